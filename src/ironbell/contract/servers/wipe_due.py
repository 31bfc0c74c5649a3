"""A complete wipe that is due: what `ironbell.dev/wipe: deferred` leaves on a server that its Machine has released.

The record stays on the Hardware, for every owner, until a complete wipe was proven. While it exists, a release does
not make the server available: it becomes the Cluster's (`hardware_claim.release`), with the labels by which everybody,
also upstream's controllers, sees that it is claimed. The Cluster is identified by its UID: a new one with the
same name is another owner.

Pure. docs/guide/tinkerbell-machines.md has the rules.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware

WIPE_DUE: Final = "ironbell.dev/wipe-due"
"""Annotation on Hardware: JSON of the complete wipe that is due before anybody but one Cluster may claim it."""
WIPE_RUN: Final = "ironbell.dev/wipe-run"
"""On Template, Workflow and Job of a complete wipe that was due: which attempt they belong to."""
UNKNOWN: Final = "unknown"


class WipeDue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Value of the annotation."""

    namespace: str
    cluster: str
    uid: str
    """UID of the Cluster."""
    machine: str
    """The TinkerbellMachine that released the server last, as `NAMESPACE/NAME`."""
    machine_uid: str
    since: str
    """When it was released last."""
    boot_options: dict[str, Any] = {}
    """How its Machine booted it over the network."""
    keep: list[str] = []
    """Disks that its Machine kept, by serial number or WWN."""
    rack: str = ""
    """Rack that the server is powered on with, as `LABEL=VALUE`."""
    ended: str = ""
    """Reason why the Cluster may no longer claim it; empty while it may."""
    ended_at: str = ""
    attempt: int = 1
    power_off_attempt: int = 1

    @property
    def owner(self) -> str:
        """The Cluster, and no later one of its name."""
        return cluster_identity(self.namespace, self.cluster, self.uid)

    @property
    def run(self) -> str:
        """Differs between any two attempts, so that what an earlier one left proves nothing."""
        return f"{self.machine_uid} {self.ended_at} {self.attempt}"

    @property
    def encoded(self) -> str:
        """The annotation's value."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return f"Cluster {self.namespace}/{self.cluster}"


def cluster_identity(namespace: str, name: str, uid: str) -> str:
    """A Cluster as an index value."""
    return f"{namespace}/{name} {uid}"


def parse_wipe_due(text: str | None) -> WipeDue | None:
    """The record; one that nobody can read is due all the same, and reserves the server for nobody."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=WipeDue)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return WipeDue(UNKNOWN, UNKNOWN, "", UNKNOWN, "", "")


def wipe_due(hardware: Hardware) -> WipeDue | None:
    """The complete wipe that is due on this server; None if none is."""
    return parse_wipe_due(hardware.metadata.annotations.get(WIPE_DUE))
