"""Admission that depends on other objects: it says which it wants to see, and decides when it has them.

What is wanted and what is decided are pure functions; who asks them reads the objects in between.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission, whose webhooks read with a client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ironbell.contract.admission import FieldProblem
from ironbell.kube.decision import AnyKind, Fields


@dataclass(frozen=True, slots=True)
class ObjectWanted:
    """One object of a kind that is ours, in the stored version."""

    kind: AnyKind
    namespace: str
    name: str
    until: Callable[[Fields], bool] | None = None
    """If given, a little time is given to it to be there and to satisfy this; after it what there is will do."""

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ReferredWanted:
    """One object that a reference names, in the version that keeps the newest contract."""

    api_group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ListWanted:
    """All objects of a kind that is ours, in one namespace (none: in all), by a selector of labels."""

    kind: AnyKind
    namespace: str = ""
    labels: str = ""

    def __str__(self) -> str:
        return self.kind.plural


Wanted: TypeAlias = ObjectWanted | ReferredWanted | ListWanted


class Found:
    """What was wanted, as far as it is there."""

    def __init__(self, held: Mapping[Wanted, Sequence[Fields]]) -> None:
        self._held = held

    def one(self, wanted: Wanted) -> Fields | None:
        """The object; None if there is none."""
        return next(iter(self._held.get(wanted, ())), None)

    def all(self, wanted: Wanted) -> Sequence[Fields]:
        """All objects."""
        return self._held.get(wanted, ())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a write."""

    problems: Sequence[FieldProblem] = ()
    warnings: Sequence[str] = ()
    forbidden: str = ""
    """Why the whole must not be, where no field of it is at fault."""


ACCEPTED = Verdict()


def nothing(new: Fields | None, old: Fields | None) -> Sequence[Wanted]:
    """For what needs no other object."""
    return ()


def as_it_is(new: Fields, old: Fields | None, found: Found) -> Fields:
    """For kinds whose defaults do not depend on other objects."""
    return new


@dataclass(frozen=True, slots=True)
class InformedAdmission:
    """What a kind's webhooks would do with a look at other objects, after and beside `Admission`, in the stored
    version. No function changes what it is given."""

    kind: AnyKind
    review: Callable[[Fields | None, Fields | None, Found], Verdict]
    """The new object (None when it is to be deleted), the old one (None when it is created), and what was wanted."""
    wanted_to_review: Callable[[Fields | None, Fields | None], Sequence[Wanted]]
    default: Callable[[Fields, Fields | None, Found], Fields] = field(default=as_it_is)
    wanted_to_default: Callable[[Fields | None, Fields | None], Sequence[Wanted]] = field(default=nothing)
    deletions: bool = False
    """Whether deletions are reviewed."""
