"""The values of an answer: the object that blocks, the reason, since when, when it ends, and the remedy."""

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
    """Objects of one kind in a namespace, by label or field selector.

    Without a namespace, all objects; they refine a remedy, and users who may not read them get a general one.
    """

    group: str
    kind: str
    namespace: str
    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The problem that blocks an object, as the object itself reports it."""

    message: str
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
    """The owner of a server."""

    kind: str
    namespace: str
    name: str
    time: str = ""
    """Since when; empty if unknown."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of one object. `chain` begins with that object and ends with the one that blocks it."""

    chain: tuple[Link, ...]
    message: str
    is_good: bool = False
    reason: str = ""
    since: str = ""
    ends_when: str = ""
    remedy: str = ""
    needs_help: bool = False
    facts: tuple[str, ...] = ()
    """Facts beside the cause, such as the owner of a server."""
    remarks: tuple[str, ...] = ()
    """Remarks that are independent of the cause, such as how a server is identified."""
    left_out: tuple[str, ...] = ()
    """Sentences about objects that were not read and may be the cause."""
    owner: Owner | None = None
    """The owner of the object in question, if that is a server with an owner."""

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
        root = {name: value for name, value in asdict(self.object).items() if name not in _OF_CAUSE}
        return {
            **root,
            "isGood": self.is_good,
            "needsHelp": self.needs_help,
            "reason": self.reason,
            "message": self.message,
            "time": self.since,
            "endsWhen": self.ends_when,
            "remedy": self.remedy,
            "chain": [asdict(link) for link in self.chain],
            "owner": None if self.owner is None else asdict(self.owner),
            "facts": list(self.facts),
            "notes": list(self.remarks),
            "leftOut": list(self.left_out),
        }


_OF_CAUSE = ("reason", "message", "time")
