"""Names and texts that we cannot choose: where, what, and why. What it does not list is held to the rules."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from words.passages import Passage
from words.rules import Place


@dataclass(frozen=True)
class Exempt:
    """A name, or a part of a text, that the rules do not apply to."""

    text: str
    """The whole identifier, or a part of a text; `*` is everything in the file."""
    reason: str
    path: str = "*"
    """Pattern of paths, as in a shell."""
    place: Place | None = Place.IDENTIFIER
    kinds: frozenset[str] = frozenset()
    """Kinds of definitions; empty is all."""

    def covers(self, path: str, passage: Passage) -> bool:
        """Return whether a whole passage is exempt."""
        return (
            fnmatchcase(path, self.path)
            and self.place in (None, passage.place)
            and (not self.kinds or passage.kind in self.kinds)
            and (self.text == "*" or (passage.place is Place.IDENTIFIER and passage.text == self.text))
        )

    def covers_part(self, path: str, passage: Passage, start: int, end: int) -> bool:
        """Return whether a part of a passage's text lies in an exempt text."""
        if passage.place is Place.IDENTIFIER or not fnmatchcase(path, self.path):
            return False
        if self.place not in (None, passage.place):
            return False
        at = passage.text.find(self.text)
        while at >= 0:
            if at <= start and end <= at + len(self.text):
                return True
            at = passage.text.find(self.text, at + 1)
        return False


EXCEPTIONS: Final = (
    Exempt("*", "generated from Tinkerbell's protocol buffers", path="src/ironbell/codec/proto/*", place=None),
    Exempt("*", "shows the words that it bans", path="docs/contributing/words.md", place=None),
    Exempt("connection_made", "a method of asyncio's protocols"),
    Exempt(
        "why",
        "the command `ironbell why` has this name, and so have its package and module",
        kinds=frozenset({"function", "module"}),
    ),
    Exempt("not_found", "the reason NotFound of Kubernetes", path="src/ironbell/apiserver/*"),
    Exempt("parameter_not_found_action", "a field of admissionregistration.k8s.io/v1"),
    Exempt(
        "Of Events with",
        "in the admission policy that `ironbell install` applies, whose text stays",
        path="src/ironbell/app/write_rules.py",
        place=Place.STRING,
    ),
    Exempt("note", "a field of events.k8s.io/v1", path="src/ironbell/api/*"),
    Exempt("NotFound", "the reason of a Status of the Kubernetes API, and the error named after it"),
    Exempt("NOT_FOUND", "the error of TFTP (RFC 1350), HTTP and gRPC has this name"),
    Exempt("before", "a field of upstream's rollout", path="src/ironbell/api/controlplane/kubeadmcontrolplane.py"),
    Exempt("ended", "a field of an annotation's JSON", path="src/ironbell/contract/servers/wipe_due.py"),
    Exempt("ended_at", "a field of an annotation's JSON", path="src/ironbell/contract/servers/wipe_due.py"),
)
