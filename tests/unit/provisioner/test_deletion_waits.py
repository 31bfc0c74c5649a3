"""What the deletion of a Hardware waits for while a complete wipe of it is due."""

from __future__ import annotations

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import CLAIMED_BY, HELD, ServerPhase
from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue
from ironbell.provisioner.deletion import deletion_waits_for, deletion_warnings, hold_finalizers
from ironbell.provisioner.health import server_phase
from support.servers.captworld import server

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


def test_a_reserved_server_that_is_held_waits_for_both() -> None:
    held = changed(RESERVED, {**RESERVED.metadata.annotations, HELD: "disk failed"})
    waits = deletion_waits_for(held)
    assert waits.startswith(
        "the complete wipe of its disks, which is due, and for its hold to be removed (disk failed)"
    )


def test_what_is_due_keeps_a_hardware_whose_claim_somebody_removed() -> None:
    labels = {"labels": {}, "annotations": {WIPE_DUE: DUE.encoded}, "finalizers": RESERVED.metadata.finalizers}
    deleting = server("s0", deleting=True, **labels)
    assert hold_finalizers(deleting) == RESERVED.metadata.finalizers
    without = server("s0", deleting=True, **{**labels, "annotations": {}})
    assert hold_finalizers(without) == [], "nobody has it, and nothing is due"


def test_people_see_whether_a_reserved_server_is_being_wiped() -> None:
    ended = msgspec.structs.replace(DUE, ended="Cluster default/prod was deleted", ended_at=DUE.since)
    wiping = {**RESERVED.metadata.annotations, WIPE_DUE: ended.encoded}
    assert server_phase(RESERVED, None) is ServerPhase.IN_USE
    assert server_phase(changed(RESERVED, wiping), None) is ServerPhase.WIPING
    assert server_phase(changed(RESERVED, {**wiping, HELD: "x"}), None) is ServerPhase.HELD


def changed(hardware: Hardware, annotations: dict[str, str]) -> Hardware:
    metadata = msgspec.structs.replace(hardware.metadata, annotations=annotations)
    return msgspec.structs.replace(hardware, metadata=metadata)
