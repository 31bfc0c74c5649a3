"""Remarks on how a server's agent identified itself, on rejected agents, and on the protection of metadata. Pure."""

from __future__ import annotations

from typing import Final

from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.workflow import WorkflowState
from ironbell.contract.servers.boot_token import Identity, is_marked
from ironbell.contract.servers.identity import IDENTITY, KNOWN_BY, Way, metadata_needs_token, requires_token
from ironbell.operations.why.model import Object
from ironbell.operations.why.world import annotation, annotation_object, group_of
from ironbell.services.workflow.names import REJECTED_AGENT

_WAYS: Final = {
    Way.TOKEN: "was last identified by the token of its boot; its request came from {peer}",
    Way.ADDRESS: "was last identified by its address, {peer}",
    Way.PROXY: "last sent a request through the trusted proxy {peer}, so its address was not compared",
    Way.UNKNOWN_ADDRESS: "was last identified by agent id alone, from {peer}: its Hardware has no address to compare "
    "with",
    Way.AGENT_ID: "was last identified by agent id alone, from {peer}: the site has identity compat",
}
_WAITS: Final = ("", WorkflowState.PREPARING, WorkflowState.PENDING)


def remarks(obj: Object) -> tuple[str, ...]:
    """Remarks about the identity of a server or a Workflow, whatever blocks it."""
    kind = (group_of(obj), obj.get("kind"))
    if kind == (HARDWARE.group, HARDWARE.kind):
        return _of_hardware(obj)
    return _of_workflow(obj) if kind == (WORKFLOW.group, WORKFLOW.kind) else ()


def _of_hardware(obj: Object) -> tuple[str, ...]:
    server, remarks_ = HARDWARE.convert(obj), []
    way, _, peer = annotation(obj, KNOWN_BY).partition(" ")
    if way in set(Way):
        remarks_.append(f"Its agent {_WAYS[Way(way)].format(peer=peer)}.")
    if is_marked(server):
        remarks_.append("The current boot is identified by its token, unless the site has identity compat.")
    if metadata_needs_token(server, Identity.OWN):
        remarks_.append("Its metadata needs a token, unless the site has identity compat.")
    elif remarks_:
        remarks_.append("Its metadata is served to its address, unless the site has identity strict.")
    return tuple(remarks_)


def _of_workflow(obj: Object) -> tuple[str, ...]:
    remarks_ = []
    if requires_token(annotation(obj, IDENTITY)):
        remarks_.append("Its agent must show the token of its boot, unless the site has identity compat.")
    if obj.get("status", {}).get("state", "") in _WAITS and (rejection := _rejection_message(obj)):
        remarks_.append(rejection)
    return tuple(remarks_)


def _rejection_message(obj: Object) -> str:
    rejection = annotation_object(obj, REJECTED_AGENT)
    if not rejection.get("why"):
        return ""
    return f"A request of an agent for its actions was rejected at {rejection.get('time', '')}: {rejection['why']}."
