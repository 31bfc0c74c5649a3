"""How a server's agent was known, who was refused that spoke in its name, and what its metadata needs. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.contract.servers.boot_token import Identity, is_marked
from ironbell.contract.servers.identity import IDENTITY, KNOWN_BY, Way, metadata_needs_token, requires_token
from ironbell.operations.why.model import Object
from ironbell.operations.why.world import annotation, group_of
from ironbell.services.workflow.names import REFUSED

_WAYS: Final = {
    Way.TOKEN: "was last known by the token of its boot; it asked from {peer}",
    Way.ADDRESS: "was last known by its address, {peer}",
    Way.PROXY: "last asked through the trusted proxy {peer}, so its address was not compared",
    Way.UNKNOWN_ADDRESS: "was last known by agent id alone, from {peer}: its Hardware has no address to compare with",
    Way.AGENT_ID: "was last known by agent id alone, from {peer}: the site has identity compat",
}
_WAITS: Final = ("", WorkflowState.PREPARING, WorkflowState.PENDING)


def notes(obj: Object) -> tuple[str, ...]:
    """What is said of a server or a Workflow, whatever blocks it."""
    kind = (group_of(obj), obj.get("kind"))
    if kind == (HARDWARE.group, HARDWARE.kind):
        return _of_hardware(obj)
    return _of_workflow(obj) if kind == (WORKFLOW.group, WORKFLOW.kind) else ()


def _of_hardware(obj: Object) -> tuple[str, ...]:
    server, said = HARDWARE.convert(obj), []
    way, _, peer = annotation(obj, KNOWN_BY).partition(" ")
    if way in set(Way):
        said.append(f"Its agent {_WAYS[Way(way)].format(peer=peer)}.")
    if is_marked(server):
        said.append("The boot that is wanted now is known by its token, unless the site has identity compat.")
    if metadata_needs_token(server, Identity.OWN):
        said.append("Its metadata needs a token, unless the site has identity compat.")
    elif said:
        said.append("Its metadata is told to its address, unless the site has identity strict.")
    return tuple(said)


def _of_workflow(obj: Object) -> tuple[str, ...]:
    said = []
    if requires_token(annotation(obj, IDENTITY)):
        said.append("Its agent must show the token of its boot, unless the site has identity compat.")
    if obj.get("status", {}).get("state", "") in _WAITS and (refused := _refused(obj)):
        said.append(refused)
    return tuple(said)


class _Refusal(msgspec.Struct, frozen=True):
    time: str = ""
    why: str = ""


def _refused(obj: Object) -> str:
    text = annotation(obj, REFUSED)
    try:
        found = msgspec.json.decode(text, type=_Refusal) if text else _Refusal()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    return f"An agent that asked for its actions was refused at {found.time}: {found.why}." if found.why else ""
