"""Warnings in the embedded API's process when objects of Tinkerbell's kinds are written, about fields without effect,
and when a Hardware that is in use or held is deleted.

On a cluster the webhook of `webhook_reviews` gives the same warnings. Nothing is rejected here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ironbell.api.bmc.machine import MACHINE
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.warnings import warn
from ironbell.contract.servers.ineffective import Ineffective, of_connection, of_hardware, of_template
from ironbell.provisioner.deletion import deletion_warnings

_GROUP_OF_RULES: Final = ("tinkerbell.org", "workflowrulesets")


def _machine(document: bytes) -> list[Ineffective]:
    return of_connection(MACHINE.decode(document).spec.connection)


def _hardware(document: bytes) -> list[Ineffective]:
    return of_hardware(HARDWARE.decode(document))


def _template(document: bytes) -> list[Ineffective]:
    return of_template(TEMPLATE.decode(document).spec.data)


def _rules(_document: bytes) -> list[Ineffective]:
    return [Ineffective("this WorkflowRuleSet", "it is stored, and nothing acts on it")]


_KINDS: Final[Mapping[tuple[str, str], Callable[[bytes], list[Ineffective]]]] = {
    (MACHINE.group, MACHINE.plural): _machine,
    (HARDWARE.group, HARDWARE.plural): _hardware,
    (TEMPLATE.group, TEMPLATE.plural): _template,
    _GROUP_OF_RULES: _rules,
}


def warnings_of(group: str, plural: str, document: Mapping[str, Any]) -> list[str]:
    """Warnings about an object; none if its schema rejects it anyway."""
    find = _KINDS.get((group, plural))
    try:
        return [f"{ineffective}." for ineffective in find(msgspec.json.encode(document))] if find is not None else []
    except msgspec.MsgspecError:
        return []


def deletion_warnings_of(document: Mapping[str, Any]) -> list[str]:
    """Warnings about the deletion of a Hardware."""
    try:
        return deletion_warnings(HARDWARE.decode(msgspec.json.encode(document)))
    except msgspec.MsgspecError:
        return []


def warn_of_tinkerbell(admission: Admission) -> None:
    """Review every write of these kinds."""
    admission.validating(_concerns, _review)


def _is_hardware(info: ResourceInfo) -> bool:
    return (info.group, info.plural) == (HARDWARE.group, HARDWARE.plural)


def _concerns(info: ResourceInfo) -> bool:
    return (info.group, info.plural) in _KINDS


async def _review(request: AdmissionRequest) -> None:
    if request.operation is Operation.DELETE and request.old is not None and _is_hardware(request.info):
        for text in deletion_warnings_of(request.old):
            warn(text)
    if request.subresource or request.new is None:
        return
    if request.old is not None and request.old.get("spec") == request.new.get("spec"):
        return
    for text in warnings_of(request.info.group, request.info.plural, request.new):
        warn(text)
