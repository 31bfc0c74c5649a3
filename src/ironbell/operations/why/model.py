"""The values of an answer: which object blocks, why, since when, what ends it, and what a person can do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ironbell.contract.causes import Weight

Object = dict[str, Any]
_BMC = "bmc.tinkerbell.org"
"""Its Machine is another kind than that of a cluster, and its Job than that of a batch."""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """One object; `scope` limits what is followed from it."""

    group: str
    kind: str
    namespace: str
    name: str
    scope: str = ""

    def __str__(self) -> str:
        kind = f"BMC {self.kind}" if self.group == _BMC else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Query:
    """Objects of one kind in a namespace, by label or field selector."""

    group: str
    kind: str
    namespace: str
    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What blocks one object, as this object reports it."""

    what: str
    reason: str = ""
    since: str = ""
    """RFC 3339; empty if unknown."""
    ends_when: str = ""
    remedy: str = ""
    weight: Weight = Weight.WAITING


@dataclass(frozen=True, slots=True)
class Link:
    """One object of the chain from the object in question to the one that blocks."""

    kind: str
    group: str
    namespace: str
    name: str
    reason: str = ""
    message: str = ""
    time: str = ""

    @property
    def qualified(self) -> str:
        """Kind with its group, and name: there are two kinds of Machine."""
        kind = f"{self.kind}.{self.group}".rstrip(".")
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"

    @property
    def title(self) -> str:
        """Kind and name."""
        return str(Ref(self.group, self.kind, self.namespace, self.name))


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a server."""

    kind: str
    namespace: str
    name: str
    time: str = ""
    """Since when; empty if unknown."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Why:
    """The answer for one object. `chain` begins with that object and ends with the one that blocks it."""

    chain: tuple[Link, ...]
    what: str
    is_good: bool = False
    reason: str = ""
    since: str = ""
    ends_when: str = ""
    remedy: str = ""
    needs_help: bool = False
    facts: tuple[str, ...] = ()
    """What is worth knowing beside the cause, such as who owns a server."""
    notes: tuple[str, ...] = ()
    """What is worth knowing whatever blocks it, such as how a server is known."""
    left_out: tuple[str, ...] = ()
    """What was not read; the cause may lie there."""
    owner: Owner | None = None
    """Who has the object in question, if that is a server and somebody has it."""

    @property
    def object(self) -> Link:
        """The object in question."""
        return self.chain[0]

    @property
    def blocking(self) -> Link:
        """The object that blocks; the object in question itself if nothing does."""
        return self.chain[-1]

    def plain(self) -> dict[str, Any]:
        """The answer as values for JSON."""
        asked = {name: value for name, value in asdict(self.object).items() if name not in _OF_CAUSE}
        return {
            **asked,
            "isGood": self.is_good,
            "needsHelp": self.needs_help,
            "reason": self.reason,
            "message": self.what,
            "time": self.since,
            "endsWhen": self.ends_when,
            "remedy": self.remedy,
            "chain": [asdict(link) for link in self.chain],
            "owner": None if self.owner is None else asdict(self.owner),
            "facts": list(self.facts),
            "notes": list(self.notes),
            "leftOut": list(self.left_out),
        }


_OF_CAUSE = ("reason", "message", "time")
