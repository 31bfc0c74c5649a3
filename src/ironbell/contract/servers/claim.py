"""The claim on a server: one record on its Hardware that every front door honours.

A claim is one write, which fails if another owner was first. It sets upstream CAPT's two labels, so that upstream's
controllers see the claim, and an annotation with the kind of the owner.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/hardware.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ironbell.api.capt.names import (
    ANNOTATION_PROVISIONED,
    FINALIZER,
    LABEL_OWNER_NAME,
    LABEL_OWNER_NAMESPACE,
    LEGACY_FINALIZER,
)
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.servers.boot_token import BOOT_TOKEN
from ironbell.contract.servers.wipe_due import WIPE_DUE, parse_wipe_due
from ironbell.kube.decision import MergePatch, patch

_UPSTREAMS: Final = "TinkerbellMachine"
"""Kind of a claim without the kind of its owner."""
CLUSTER_KIND: Final = "Cluster"
"""Kind of a claim on a server that is reserved for a Cluster, see `wipe_due`."""
CLAIMED_BY: Final = "ironbell.dev/claimed-by"
"""Annotation on Hardware that is claimed: `KIND NAMESPACE/NAME UID` of the owner."""
CLAIMED_SINCE: Final = "ironbell.dev/claimed-since"
"""Annotation on Hardware that is claimed: time of the claim."""
USER_DATA_OF: Final = "ironbell.dev/user-data-of"
"""Annotation on Hardware: Secret and its version that the user data was filled from, or `withdrawn`."""
WITHDRAWN: Final = "withdrawn"
WIPED: Final = "ironbell.dev/wiped"
"""Annotation on Hardware: what was done to its disks when it was last released, as JSON, until it is claimed again."""
HELD: Final = "ironbell.dev/hold"
"""Annotation on Hardware that must not be claimed, powered, wiped or installed: the reason."""
HOLD_FINALIZER: Final = HELD
"""Finalizer on Hardware that is held: its deletion waits until the hold is removed."""
PHASE: Final = "ironbell.dev/phase"
"""Annotation on Hardware: phase of the server (`ServerPhase`), for people. The Hardware controller sets it; a claim or
a release changes it in the same write, if it is set."""
POWER: Final = "ironbell.dev/power"
"""Annotation on Hardware: whether the server is `on` or `off`, as its BMC last answered; unset if that is not known."""
INSTALLED_SYSTEM_UP: Final = "ironbell.dev/installed-system-up"
"""Annotation on Hardware: when the installed system last reported that it is up."""
INSTALLED_SYSTEM_FAILED: Final = "ironbell.dev/installed-system-failed"
"""Annotation on Hardware: JSON of the first failure that the installed system reported
(`provisioner.installed_system.SystemFailure`)."""
_LEFT: Final[Mapping[str, None]] = dict.fromkeys(
    (
        *(CLAIMED_BY, CLAIMED_SINCE, USER_DATA_OF, ANNOTATION_PROVISIONED, BOOT_TOKEN),
        *(INSTALLED_SYSTEM_UP, INSTALLED_SYSTEM_FAILED),
    )
)


class ServerPhase(StrEnum):
    """Values of the annotation `PHASE`."""

    FREE = "Free"
    IN_USE = "InUse"
    WIPING = "Wiping"
    HELD = "Held"
    DELETING = "Deleting"
    UNREACHABLE = "Unreachable"


@dataclass(frozen=True, slots=True)
class Claimant:
    """An owner that claims a server."""

    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} {self.uid}"


@dataclass(frozen=True, slots=True)
class Claim:
    """Owner of a server; `kind` and `uid` are empty if upstream's controllers claimed it."""

    namespace: str
    name: str
    kind: str = ""
    uid: str = ""

    @property
    def is_reservation(self) -> bool:
        """Return whether no machine has the server: it is reserved for a Cluster."""
        return self.kind == CLUSTER_KIND

    def is_of(self, claimant: Claimant) -> bool:
        """Return whether the claimant has it: by name, and by uid unless upstream's controllers claimed it.

        A claimant that was moved to another API has another uid; it names its server itself.
        """
        return self.is_of_name(claimant) and self.uid in ("", claimant.uid)

    def is_of_name(self, claimant: Claimant) -> bool:
        """Return the same as `is_of`, for any uid."""
        named = (self.namespace, self.name) == (claimant.namespace, claimant.name)
        return named and self.is_of_kind(claimant.kind)

    def is_of_kind(self, kind: str) -> bool:
        """Return whether an object of this kind has the server; upstream's controllers claim for their own kind."""
        return (self.kind or _UPSTREAMS) == kind

    def __str__(self) -> str:
        return f"{self.kind or _UPSTREAMS} {self.namespace}/{self.name}"


def claim_of(hardware: Hardware) -> Claim | None:
    """Return the claim on this server, or None."""
    labels = hardware.metadata.labels
    name = labels.get(LABEL_OWNER_NAME)
    if name is None:
        return None
    namespace = labels.get(LABEL_OWNER_NAMESPACE, "")
    kind, _, rest = hardware.metadata.annotations.get(CLAIMED_BY, "").partition(" ")
    place, _, uid = rest.partition(" ")
    # The labels decide: an annotation for another owner was left over when they were changed by hand.
    return Claim(namespace, name, kind, uid) if place == f"{namespace}/{name}" else Claim(namespace, name)


def claim_patch(hardware: Hardware, claimant: Claimant, *, since: str) -> MergePatch:
    """Return the one write that claims an available server. It also removes traces of the former owner: its user data,
    which upstream's controllers leave there, and the record of a wipe, which is void once a new owner writes to the
    disks."""
    metadata: dict[str, Any] = {
        "labels": {LABEL_OWNER_NAME: claimant.name, LABEL_OWNER_NAMESPACE: claimant.namespace},
        "annotations": {
            **_LEFT,
            **phase_annotation(hardware, ServerPhase.IN_USE),
            WIPED: None,
            CLAIMED_BY: str(claimant),
            CLAIMED_SINCE: since,
        },
        "finalizers": [*_others(hardware), FINALIZER],
    }
    return patch(HARDWARE, hardware, {"metadata": metadata, "spec": {"userData": None}}, locked=True)


def release(hardware: Hardware, annotations: Mapping[str, str | None] | None = None) -> MergePatch:
    """Return the one write that releases a server, without its owner's data; it may set further annotations.

    If a complete wipe is due, the server becomes the Cluster's for which it is reserved, for every owner that releases
    it: it is available only once that record is removed, by these annotations at the latest.
    """
    changed = annotations or {}
    held = {**hardware.metadata.annotations, **changed}.get(HELD) is not None
    due = parse_wipe_due(changed.get(WIPE_DUE, hardware.metadata.annotations.get(WIPE_DUE)))
    labels: dict[str, str | None] = {LABEL_OWNER_NAME: None, LABEL_OWNER_NAMESPACE: None}
    claimed: dict[str, str | None] = {}
    phase = ServerPhase.FREE
    finalizers = [*_others(hardware), *(_of_hold(hardware) if held else [])]
    if due is not None:
        labels = {LABEL_OWNER_NAME: due.cluster, LABEL_OWNER_NAMESPACE: due.namespace}
        claimed = {
            CLAIMED_BY: str(Claimant(CLUSTER_KIND, due.namespace, due.cluster, due.uid)),
            CLAIMED_SINCE: due.since,
        }
        phase = ServerPhase.WIPING if due.ended else ServerPhase.IN_USE
        # The API accepts no new finalizer on an object that is being deleted: that of the claim stays.
        present = [
            finalizer for finalizer in hardware.metadata.finalizers if finalizer in (FINALIZER, LEGACY_FINALIZER)
        ]
        finalizers = list(dict.fromkeys([*finalizers, *(present or [FINALIZER])]))
    metadata: dict[str, Any] = {
        "labels": labels,
        "annotations": {
            **_LEFT,
            **claimed,
            **phase_annotation(hardware, ServerPhase.HELD if held else phase),
            **changed,
        },
        "finalizers": finalizers or None,
    }
    return patch(HARDWARE, hardware, {"metadata": metadata, "spec": {"userData": None}}, locked=True)


def phase_annotation(hardware: Hardware, phase: ServerPhase) -> dict[str, str]:
    """The annotation for a new phase; empty if no Hardware controller reconciles this Hardware."""
    return {PHASE: phase} if PHASE in hardware.metadata.annotations else {}


def _of_hold(hardware: Hardware) -> list[str]:
    """Return the finalizers that keep a server which is released and held; the Hardware controller removes them.

    The API accepts no new finalizer on an object that is being deleted: there that of the claim stays.
    """
    if PHASE not in hardware.metadata.annotations or HOLD_FINALIZER in hardware.metadata.finalizers:
        return []
    if hardware.metadata.deletion_timestamp is None:
        return [HOLD_FINALIZER]
    return [finalizer for finalizer in hardware.metadata.finalizers if finalizer in (FINALIZER, LEGACY_FINALIZER)]


def _others(hardware: Hardware) -> list[str]:
    return [finalizer for finalizer in hardware.metadata.finalizers if finalizer not in (FINALIZER, LEGACY_FINALIZER)]
