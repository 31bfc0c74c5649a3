"""What the deletion of a server waits for, and who ends that."""

from __future__ import annotations

import pytest

from support.whyworld import SINCE, answer, hardware

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
            "it is held: smoke",
            "Remove annotation ironbell.dev/hold",
        ),
        (OWNED, {}, ["x/y"], f"it is in use by {OWNER}", f"Delete the Machine of {OWNER}"),
        (
            OWNED,
            HOLD,
            ["ironbell.dev/hold"],
            f"it is in use by {OWNER}, and it is held: smoke",
            f"Delete the Machine of {OWNER} and remove annotation ironbell.dev/hold",
        ),
        ({}, {}, ["x/y"], "finalizers x/y", ""),
    ],
)
def test_the_deletion_of_a_server_names_what_it_waits_for(
    labels: dict[str, str], annotations: dict[str, str], finalizers: list[str], what: str, remedy: str
) -> None:
    metadata = {"labels": labels, "finalizers": finalizers, "deletionTimestamp": SINCE}
    found = answer(hardware(annotations=annotations, metadata=metadata))
    assert (found.what, found.remedy) == (f"is being deleted and waits: {what}", remedy)
