"""What the metadata service tells of a server: one rule for every route, EC2 and NoCloud alike. Pure.

There are three kinds of documents. What a server is (its names, keys, network) is told to it whenever it is known: a
node that is held, or has long joined its cluster, still asks for it at each boot, and without an answer cloud-init
would take it for another machine. The storage layout is for the in-memory OS. What a server is to do (user data and
vendor data) may hold secrets, and is told only while it is to be done:

- not once the user data was withdrawn, since the server has joined its cluster or is being released;
- not while its record is from a backup and not confirmed;
- not before its installation is whole, and not while it is held in the middle of it; then it may ask again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ironbell.api.capt.names import ANNOTATION_PROVISIONED
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.hardware_claim import HELD, USER_DATA_OF, WITHDRAWN, claim_of
from ironbell.contract.installation import FindWorkflow, why_not_whole
from ironbell.provisioner.user_data import why_withheld


class Document(Enum):
    """The kinds of documents."""

    DESCRIPTION = "description"
    STORAGE = "storage"
    INSTRUCTIONS = "instructions"


INSTRUCTIONS: Final = frozenset({"user-data", "vendor-data"})
"""Names of documents that tell a server what to do, in every tree."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell it."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """There is no such document now, and will be none by asking again."""

    why: str


@dataclass(frozen=True, slots=True)
class Later:
    """Not yet: ask again."""

    why: str


def kind_of(name: str) -> Document:
    """The kind of a document by its name; `storage` is the in-memory OS's."""
    if name in INSTRUCTIONS:
        return Document.INSTRUCTIONS
    return Document.STORAGE if name == "storage" else Document.DESCRIPTION


def verdict(hardware: Hardware, document: Document, find: FindWorkflow) -> Tell | Withhold | Later:
    """Whether a document of a server is told to the system that is known to be that server's."""
    if document is not Document.INSTRUCTIONS:
        return Tell()
    if why := why_withheld(hardware):
        return Withhold(why)
    if why := why_not_whole(hardware, find) or _held(hardware):
        return Later(why)
    return Tell()


def _held(hardware: Hardware) -> str:
    """Why a server that a controller installs is told nothing in the middle of that; a Workflow that a person wrote
    goes on while its server is held."""
    annotations = hardware.metadata.annotations
    is_given = annotations.get(USER_DATA_OF, WITHDRAWN) != WITHDRAWN
    if HELD not in annotations or claim_of(hardware) is None or not is_given:
        return ""
    if annotations.get(ANNOTATION_PROVISIONED) == "true":
        return ""
    return f"the server is held: {annotations[HELD] or 'no reason given'}"
