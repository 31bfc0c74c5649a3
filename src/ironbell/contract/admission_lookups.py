"""Admission that depends on other objects: a kind names the objects to look up, and decides with the results.

Both are pure functions; the webhook server reads the objects in between.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission, whose webhooks read with a client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ironbell.contract.admission import FieldProblem
from ironbell.kube.decision import AnyKind, Fields


@dataclass(frozen=True, slots=True)
class ObjectLookup:
    """One object of a kind that we serve, in the stored version."""

    kind: AnyKind
    namespace: str
    name: str
    until: Callable[[Fields], bool] | None = None
    """If set, the lookup waits a little for the object to exist and to satisfy this; then it returns the current state.
    """

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ReferenceLookup:
    """One object that a reference names, in the version that implements the newest contract."""

    api_group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ListLookup:
    """All objects of a kind that we serve, in one namespace (empty: in all), by a label selector."""

    kind: AnyKind
    namespace: str = ""
    labels: str = ""

    def __str__(self) -> str:
        return self.kind.plural


Lookup: TypeAlias = ObjectLookup | ReferenceLookup | ListLookup


class LookupResults:
    """The objects that were looked up, as far as they exist."""

    def __init__(self, objects: Mapping[Lookup, Sequence[Fields]]) -> None:
        self._objects = objects

    def get(self, lookup: Lookup) -> Fields | None:
        """The object, or None if it does not exist."""
        return next(iter(self._objects.get(lookup, ())), None)

    def all(self, lookup: Lookup) -> Sequence[Fields]:
        """All objects of a lookup."""
        return self._objects.get(lookup, ())


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The response to a write."""

    problems: Sequence[FieldProblem] = ()
    warnings: Sequence[str] = ()
    forbidden: str = ""
    """Reason why the write as a whole is rejected, where no single field is the cause."""


ACCEPTED = AdmissionResponse()


def no_lookups(new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    """Look up nothing: for functions that need no other object."""
    return ()


def unchanged(new: Fields, old: Fields | None, results: LookupResults) -> Fields:
    """Return the object: for kinds whose defaults do not depend on other objects."""
    return new


@dataclass(frozen=True, slots=True)
class InformedAdmission:
    """Functions of a kind's webhooks that depend on other objects; they run after those of `Admission`, on the stored
    version. No function changes its arguments."""

    kind: AnyKind
    review: Callable[[Fields | None, Fields | None, LookupResults], AdmissionResponse]
    """Takes the new object (None on deletion), the old one (None on creation), and the objects that were looked up."""
    lookups_for_review: Callable[[Fields | None, Fields | None], Sequence[Lookup]]
    default: Callable[[Fields, Fields | None, LookupResults], Fields] = field(default=unchanged)
    lookups_for_default: Callable[[Fields | None, Fields | None], Sequence[Lookup]] = field(default=no_lookups)
    deletions: bool = False
    """Whether deletions are reviewed."""
