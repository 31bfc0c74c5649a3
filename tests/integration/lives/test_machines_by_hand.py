"""Machines that nobody owns: manifests as people wrote them before there were control plane objects."""

from __future__ import annotations

from typing import Any

from support.capi.life import CORE, MACHINES, Life, Place, Size, expect, rendered

OLDEST = "v1.17.0"
NAME = "{nodeRegistration: {name: '{{ ds.meta_data.name }}'}}"
CONTROL_PLANE = (
    f"{{clusterConfiguration: {{}}, initConfiguration: {NAME}, joinConfiguration: {{controlPlane: {{}},"
    " nodeRegistration: {name: '{{ ds.meta_data.name }}'}}}"
)
WORKER = f"{{joinConfiguration: {NAME}}}"


def joining(name: str, *, join: str, label: str = "") -> str:
    labels = f'{{{label}: "true"}}' if label else "{}"
    size = Size(0, 0, OLDEST)
    return rendered("machine-joining.yaml", "test1", size, MACHINE=name, LABELS=labels, JOIN=join)


async def test_machines_without_owners(place: Place) -> None:
    test1 = place.cluster("test1")
    await place.apply(rendered("machines-by-hand.yaml", "test1", Size(1, 0)))
    await place.until(lambda: _run(test1, "test1-controlplane-0"))
    [machine] = await test1.machines()
    assert machine["spec"]["clusterName"] == "test1"
    [node] = await _nodes(test1)
    [host] = await place.items("devmachines")
    assert node["metadata"]["labels"]["metal3.io/uuid"] == host["metadata"]["uid"]

    await place.apply(joining("test1-controlplane-1", join=CONTROL_PLANE, label=f"{CORE}/control-plane"))
    await place.apply(joining("test1-worker-0", join=WORKER))
    await place.until(lambda: _run(test1, "test1-controlplane-0", "test1-controlplane-1", "test1-worker-0"))
    await place.run("wait", test1.what, "--for=condition=Available", "--timeout=30s")
    assert len(await _nodes(test1)) == 3

    await place.run("delete", f"{MACHINES}/test1-worker-0", f"--timeout={place.within_s:.0f}s")
    await place.until(lambda: _run(test1, "test1-controlplane-0", "test1-controlplane-1"))
    assert len(await _nodes(test1)) == 2
    await test1.delete()


async def _run(life: Life, *names: str) -> None:
    machines = {one["metadata"]["name"]: one for one in await life.machines()}
    assert set(machines) == set(names)
    for one in machines.values():
        # one that was applied a moment ago has no status at all
        status = one.get("status", {})
        assert (status.get("phase"), one["spec"]["version"]) == ("Running", OLDEST), status
        expect(status["conditions"], Ready=True, NodeReady=True)


async def _nodes(life: Life) -> list[dict[str, Any]]:
    inside = await life.inside()
    kubectl = Place(inside, "default")
    return await kubectl.items("nodes")
