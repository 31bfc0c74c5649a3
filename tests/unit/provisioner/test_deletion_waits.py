"""What the deletion of a Hardware waits for while a complete wipe of it is due."""

from __future__ import annotations

from ironbell.contract.hardware_claim import CLAIMED_BY
from ironbell.contract.wipe_due import WIPE_DUE, WipeDue
from ironbell.provisioner.deletion import deletion_waits_for, deletion_warnings
from support.captworld import server

DUE = WipeDue("default", "prod", "u1", "default/m", "u2", "2026-01-01T00:00:00Z")
LABELS = {"v1alpha1.tinkerbell.org/ownerName": "prod", "v1alpha1.tinkerbell.org/ownerNamespace": "default"}
RESERVED = server(
    "s0",
    labels=LABELS,
    annotations={WIPE_DUE: DUE.encoded, CLAIMED_BY: "Cluster default/prod u1"},
    finalizers=["tinkerbellmachine.infrastructure.cluster.x-k8s.io"],
)


def test_the_deletion_of_a_reserved_server_waits_for_its_complete_wipe() -> None:
    assert deletion_waits_for(RESERVED) == "the complete wipe of its disks, which is due"


def test_who_deletes_a_reserved_server_is_warned_that_it_is_wiped_first() -> None:
    (warning,) = deletion_warnings(RESERVED)
    assert warning.startswith('Hardware "default/s0" is reserved for Cluster default/prod, and a complete wipe')
