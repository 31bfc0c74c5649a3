"""What is left of the embedded API's parts of Cluster API when components are left out."""

from __future__ import annotations

import pytest

from ironbell.api.client import ListOptions
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.components import COMPONENTS, Role
from ironbell.app.run.controllers import controller_names
from ironbell.app.site.controllers import rules_by_controller
from ironbell.app.systems import SYSTEMS, converted_in
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule

CONVERTED = converted_in(SYSTEMS)
OURS = ["cluster-api", "kubeadm-bootstrap", "kubeadm-control-plane"]
IDENTITIES = {"rufio-access", "capt-bootstrap-data", "workload-access"}


def test_every_converted_kind_is_one_component_s() -> None:
    whole = ClusterKinds().conversions.keys()
    assert whole == CONVERTED
    owned = [whole - ClusterKinds([name]).conversions.keys() for name in OURS]
    assert sorted(name for part in owned for name in part) == sorted(CONVERTED)
    assert {name.partition(".")[2] for name in owned[2]} == {"controlplane.cluster.x-k8s.io"}


@pytest.mark.parametrize(
    ("without", "left"),
    [
        (OURS, set()),
        (OURS[:2], {"kubeadmcontrolplanes", "kubeadmcontrolplanetemplates"}),
        (["tink-controller", *OURS[1:]], {"clusters", "machines", "ipaddressclaims", "extensionconfigs"}),
    ],
)
async def test_kinds_of_who_is_left_out_are_not_defined(without: list[str], left: set[str]) -> None:
    kinds = ClusterKinds(without)
    opened = ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        compile_rule=compile_rule,
        conversions=kinds.conversions,
    )
    async with opened as server:
        kinds.join(server)
        await kinds.define(server)
        page = await DirectApi(server.context, ADMIN).list(CUSTOM_RESOURCE_DEFINITION.collection, "", ListOptions())
    names = {CUSTOM_RESOURCE_DEFINITION.decode(body).metadata.name for body in page.items}
    assert names & CONVERTED == kinds.conversions.keys()
    assert left <= {name.partition(".")[0] for name in names}


def test_who_is_left_out_may_do_nothing() -> None:
    whole = rules_by_controller()
    assert whole.keys() == {*controller_names(), *IDENTITIES}
    every = [one.name for one in COMPONENTS if one.role is Role.CONTROLLERS]
    assert rules_by_controller(every).keys() == IDENTITIES
    for name in every:
        gone = whole.keys() - rules_by_controller([name]).keys()
        assert gone, f"{name} has no controllers"
