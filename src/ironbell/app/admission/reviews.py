"""Warnings about an object when it is applied, which kubectl shows; they never reject it.

A Template that does not parse and a MAC address that two Hardware claim are reported in their status later. A rejection
would make the outcome depend on the order in which objects are applied, and on the availability of this server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.app.admission.warnings import deletion_warnings_of, warnings_of
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.directory import HardwareDirectory, Match, normal_mac
from ironbell.controllers.tink.template import Parse
from ironbell.kube.decision import AnyKind

Review: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[list[str]]]
"""Takes the new object, or the one that is to be deleted, and returns warnings about it."""


def template_review(parse: Parse) -> Review:
    """Review whether a Template's text parses."""

    async def review(document: Mapping[str, Any]) -> list[str]:
        text = (document.get("spec") or {}).get("data") or ""
        namespace = (document.get("metadata") or {}).get("namespace") or ""
        try:
            await parse(text, namespace)
        except IronbellError as error:
            return [f"spec.data: {error}"] if error.retry is Retry.NEVER else []  # its status will report it
        return []

    return review


def ineffective_review(kind: AnyKind) -> Review:
    """Review whether fields of an object have no effect."""

    async def review(document: Mapping[str, Any]) -> list[str]:
        return warnings_of(kind.group, kind.plural, document)

    return review


async def hardware_deletion_review(document: Mapping[str, Any]) -> list[str]:
    """Review whether the Hardware that is to be deleted is in use or held."""
    return deletion_warnings_of(document)


def both(first: Review, second: Review) -> Review:
    """The warnings of two reviews."""

    async def review(document: Mapping[str, Any]) -> list[str]:
        return [*await first(document), *await second(document)]

    return review


def hardware_review(directory: HardwareDirectory) -> Review:
    """Review whether another Hardware has one of its MAC addresses."""

    async def review(document: Mapping[str, Any]) -> list[str]:
        try:
            hardware = HARDWARE.decode(msgspec.json.encode(document))
        except msgspec.MsgspecError:
            return []  # the schema rejects it
        return list(_claimed(hardware, directory))

    return review


def _claimed(hardware: Hardware, directory: HardwareDirectory) -> list[str]:
    own = "/".join(hardware.key)
    warnings = []
    for number, interface in enumerate(hardware.spec.interfaces):
        mac = normal_mac(interface.dhcp.mac) if interface.dhcp else ""
        others = [name for name in _names(directory, mac) if name != own]
        if others:
            claimed = ", ".join(others)
            warnings.append(
                f"spec.interfaces[{number}].dhcp.mac: {mac} is also claimed by Hardware {claimed}; "
                "none of them is served until only one has it"
            )
    return warnings


def _names(directory: HardwareDirectory, mac: str) -> tuple[str, ...]:
    lookup = directory.by_mac(mac) if mac else None
    if lookup is None:
        return ()
    return ("/".join(lookup.hardware.key),) if isinstance(lookup, Match) else lookup.names
