"""A cluster without a class: it comes, grows, loses Machines, is repaired, shrinks and goes."""

from __future__ import annotations

import pytest

from support.capi.life import NEW, OLD, Place, Size, rendered
from support.capi.lifesites import LiveSite

TEMPLATES = {
    "devmachinetemplate.infrastructure.cluster.x-k8s.io/one",
    "kubeadmconfigtemplate.bootstrap.cluster.x-k8s.io/one",
}


@pytest.mark.parametrize("swapped", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["", "swapped"])
async def test_a_whole_life(live_site: LiveSite, place: Place, *, swapped: bool) -> None:
    """In the newer version on the embedded API and in the older one on a real one; swapped the other way round."""
    version = NEW if (live_site.name == "embedded") is not swapped else OLD
    one = place.cluster("one")
    await place.apply(rendered(f"without-class-{version}.yaml", "one", Size(1, 1)))
    await one.runs(Size(1, 1))
    await one.has_nodes(Size(1, 1))

    await place.scale("kubeadmcontrolplanes/one", 3)
    await place.scale("machinedeployments/one", 10)
    await one.runs(Size(3, 10))
    await one.has_nodes(Size(3, 10))

    workers, control_planes = await one.machines(control_planes=False), await one.machines(control_planes=True)
    gone = (workers[0], workers[1], control_planes[0])
    await place.run("delete", f"machines.cluster.x-k8s.io/{workers[0]['metadata']['name']}")
    await one.break_node(workers[1])
    await one.break_node(control_planes[0])
    await one.lacks(*gone)
    await one.runs(Size(3, 10))
    await one.has_nodes(Size(3, 10))

    await place.scale("kubeadmcontrolplanes/one", 1)
    await place.scale("machinedeployments/one", 1)
    await one.runs(Size(1, 1))
    await one.delete(TEMPLATES)
