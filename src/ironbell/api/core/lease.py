"""Lease: who holds something, and until when.

Source: kubernetes/api: coordination/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Int32, Schema, Time
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class LeaseSpec(Model, frozen=True):
    """Holder and times."""

    holder_identity: Annotated[str | None, Schema("Identity of the holder.")] = None
    lease_duration_seconds: Annotated[Int32 | None, Schema("How long it lasts after a renewal.", minimum=1)] = None
    acquire_time: Annotated[Time, Schema("When the holder took it.")] = None
    renew_time: Annotated[Time, Schema("When the holder renewed it last.")] = None
    lease_transitions: Annotated[Int32 | None, Schema("How often it changed hands.", minimum=0)] = None
    strategy: Annotated[str | None, Schema("How a holder is chosen, in coordinated election.")] = None
    preferred_holder: Annotated[str | None, Schema("Identity of the holder that should take over.")] = None


class Lease(Resource, frozen=True):
    """Holder of something, and the end of its term."""

    spec: LeaseSpec = LeaseSpec()


LEASE: Kind[Lease] = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    model=Lease,
    columns=(
        Column("Holder", ".spec.holderIdentity"),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ),
    description="Holder of something, and the end of its term.",
)
