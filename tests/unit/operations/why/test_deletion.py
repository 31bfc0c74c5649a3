"""What the deletion of a server waits for, and who ends that."""

from __future__ import annotations

import pytest

from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue
from support.servers.whyworld import BMC, SINCE, answer, condition, hardware, obj

OWNED = {"v1alpha1.tinkerbell.org/ownerName": "m", "v1alpha1.tinkerbell.org/ownerNamespace": "site"}
OWNER = "TinkerbellMachine site/m"
HOLD = {"ironbell.dev/hold": "smoke"}


@pytest.mark.parametrize(
    ("labels", "annotations", "finalizers", "what", "remedy"),
    [
        (
            {},
            HOLD,
            ["ironbell.dev/hold"],
            ": it is held: smoke",
            "Remove annotation ironbell.dev/hold",
        ),
        (OWNED, {}, ["x/y"], f": it is in use by {OWNER}", f"Delete the Machine of {OWNER}"),
        (
            OWNED,
            HOLD,
            ["ironbell.dev/hold"],
            f": it is in use by {OWNER}, and it is held: smoke",
            f"Delete the Machine of {OWNER} and remove annotation ironbell.dev/hold",
        ),
        (
            {},
            {},
            ["x/y"],
            " for x/y, which another program removes",
            "Check the program that set it; remove the finalizer by hand if that program no longer runs",
        ),
        ({}, {}, ["ironbell.dev/hold"], " for ironbell.dev/hold", ""),
    ],
)
def test_the_deletion_of_a_server_names_what_it_waits_for(
    labels: dict[str, str], annotations: dict[str, str], finalizers: list[str], what: str, remedy: str
) -> None:
    metadata = {"labels": labels, "finalizers": finalizers, "deletionTimestamp": SINCE}
    found = answer(hardware(annotations=annotations, metadata=metadata))
    assert (found.message, found.remedy) == (f"is being deleted and waits{what}", remedy)
    assert found.needs_help is bool(remedy)


@pytest.mark.parametrize("has_bmc", [True, False])
def test_a_wipe_that_is_due_needs_somebody_only_where_nothing_else_boots_the_server(has_bmc: bool) -> None:
    due = WipeDue("site", "one", "u1", "site/m", "u2", SINCE, ended="its Hardware is being deleted", ended_at=SINCE)
    metadata = {"finalizers": ["x/y"], "deletionTimestamp": SINCE}
    spec = {"bmcRef": {"name": "b"}} if has_bmc else {}
    bmc = obj(BMC, "Machine", "b", condition("Contactable", "True"))
    found = answer(hardware(annotations={WIPE_DUE: due.encoded}, metadata=metadata, **spec), bmc)
    assert found.message == "is being deleted and waits: a complete wipe of its disks is due"
    assert found.remedy == ("" if has_bmc else "Boot the server, which has no BMC, over the network")
    assert found.needs_help is not has_bmc
