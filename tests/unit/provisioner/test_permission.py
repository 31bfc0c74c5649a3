"""Which servers let Workflows run."""

from typing import Any

import pytest

from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.contract.servers.claim import HELD, Claimant, claim_patch
from ironbell.kube.patches import apply
from ironbell.provisioner.permission import hold_objection, workflow_objection

FIRST, SECOND = "02:00:00:00:00:01", "02:00:00:00:00:02"


def _objection(*allowed: bool | str | None, agents: tuple[str, ...] = ()) -> str | None:
    interfaces: list[dict[str, Any]] = []
    for mac, value in zip((FIRST, SECOND), allowed, strict=False):
        netboot = {} if value == "no netboot" else {"netboot": {} if value is None else {"allowWorkflow": value}}
        interfaces.append({"dhcp": {"mac": mac}, **netboot})
    return workflow_objection(
        HARDWARE.convert({"metadata": {"name": "m1"}, "spec": {"interfaces": interfaces}}), agents
    )


@pytest.mark.parametrize(
    ("allowed", "agents"),
    [
        ((), ()),
        ((None,), ()),
        ((True,), ()),
        (("no netboot",), ()),
        ((True, False), ()),
        ((True, False), (FIRST,)),
        ((None, False), (FIRST,)),
    ],
)
def test_what_is_unset_or_true_allows(allowed: tuple[Any, ...], agents: tuple[str, ...]) -> None:
    assert _objection(*allowed, agents=agents) is None


@pytest.mark.parametrize(
    ("allowed", "agents", "number"),
    [
        ((False,), (), 0),
        ((False, "no netboot"), (), 0),
        ((False, True), ("02-00-00-00-00-01",), 0),
        ((True, False), (SECOND,), 1),
        ((False, False), ("an-agent",), 0),
    ],
)
def test_false_forbids_and_names_the_field(allowed: tuple[Any, ...], agents: tuple[str, ...], number: int) -> None:
    assert _objection(*allowed, agents=agents) == (
        f'spec.interfaces[{number}].netboot.allowWorkflow of Hardware "m1" is false; set it to true to let Workflows'
        " run on this server."
    )


@pytest.mark.parametrize(("owner", "is_stopped"), [("uid-h", True), ("uid-other", False), ("", False)])
def test_a_hold_stops_the_workflows_of_whatever_kind_has_the_server(owner: str, is_stopped: bool) -> None:
    held = {"metadata": {"name": "m1", "namespace": "default", "annotations": {HELD: "fan"}}}
    claim = claim_patch(HARDWARE.convert(held), Claimant("Host", "default", "h", "uid-h"), since="").body
    reference = {"apiVersion": "demo.ironbell.dev/v1", "kind": "Host", "name": "h", "uid": owner}
    metadata = {"name": "h", "namespace": "default", "ownerReferences": [reference] if owner else []}
    objection = hold_objection(HARDWARE.convert(apply(held, claim)), WORKFLOW.convert({"metadata": metadata}))
    assert (objection is not None) is is_stopped
