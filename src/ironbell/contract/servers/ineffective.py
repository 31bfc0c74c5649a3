"""Fields that are accepted because upstream has them, and that have no effect here. Pure.

They become warnings when an object is applied, and a condition where the object has conditions. What is rejected by
name (`rpc`, `homeassistant`) is not listed: the object's own condition reports that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.bmc.connection import Connection, ProviderOptions
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.ports import IPMI_PORT
from ironbell.contract.servers.bmc_service import service_of

FIELDS_WITHOUT_EFFECT: Final = "FieldsWithoutEffect"
"""Type of the condition that lists them; absent where there are none."""
_OTHER_DRIVERS: Final = {"ipmitool": "ipmitool", "intel_amt": "intelAMT"}
"""Fields of `providerOptions` for drivers that upstream has, with their names in JSON."""
_COMMENTS: Final = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_HANDLERS: Final = re.compile(
    r"(?:^[ \t]*(?:-[ \t]+)?|[{,][ \t]*)[\"']?(on-timeout|on-failure)[\"']?[ \t]*:", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Ineffective:
    """A field without effect, and the reason."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} has no effect: {self.reason}"


def listed(ineffective: Sequence[Ineffective]) -> str:
    """All of them as the message of a condition."""
    return "; ".join(map(str, ineffective)) + "."


def of_connection(connection: Connection, path: str = "spec.connection") -> list[Ineffective]:
    """Fields of a BMC's connection that the driver which serves it does not use."""
    options, service = connection.provider_options or ProviderOptions(), service_of(connection)
    driver = service.driver
    used = f"the {driver.options} driver is used, on port {service.port} (providerOptions.{driver.options}.port)"
    where = f"{path}.providerOptions"
    ineffective = []
    if any(name.lower() != driver.name for name in options.preferred_order):
        ineffective.append(Ineffective(f"{where}.preferredOrder", used))
    for field, name in _OTHER_DRIVERS.items():
        if field != driver.options and getattr(options, field) is not None:
            ineffective.append(Ineffective(f"{where}.{name}", used))
    if connection.port not in (0, IPMI_PORT, service.port):
        ineffective.append(Ineffective(f"{path}.port", used))
    return ineffective


def of_hardware(hardware: Hardware) -> list[Ineffective]:
    """Fields of a Hardware."""
    ineffective = []
    if hardware.spec.auto.enrollment_enabled:
        ineffective.append(
            Ineffective("spec.auto.enrollmentEnabled", "WorkflowRuleSets are stored, and nothing acts on them")
        )
    if hardware.spec.references:
        ineffective.append(Ineffective("spec.references", "templates find nothing in .references"))
    for number, interface in enumerate(hardware.spec.interfaces):
        where = f"spec.interfaces[{number}]"
        if interface.isoboot is not None:
            reason = "servers boot an ISO image by bootOptions of a Workflow only"
            ineffective.append(Ineffective(f"{where}.isoboot", reason))
        netboot = interface.netboot
        if netboot is not None and netboot.pxelinux is not None:
            ineffective.append(Ineffective(f"{where}.netboot.pxelinux", "servers boot by iPXE only"))
        if netboot is not None and netboot.rpi is not None:
            ineffective.append(Ineffective(f"{where}.netboot.rpi", "the firmware of a Raspberry Pi is not served"))
    return ineffective


def of_template(text: str) -> list[Ineffective]:
    """Fields of a Template's text, as far as its text shows them before it is rendered."""
    names = sorted({match[1] for match in _HANDLERS.finditer(_COMMENTS.sub("", text))})
    return [action_handler(f"spec.data: {name} of an action") for name in names]


def action_handler(path: str) -> Ineffective:
    """`on-timeout` or `on-failure` of an action."""
    return Ineffective(path, "a Workflow ends with the first action that fails, and runs no other command")


def action_volumes(path: str, action: str, volumes: Sequence[str]) -> Iterator[Ineffective]:
    """Volumes of an action that is built in: it sees the machine's files where they are."""
    if any(source != target for source, target in map(_ends, volumes)):
        yield Ineffective(
            path, f"{action} is built into the agent and sees the machine's own files, at their own paths"
        )


def _ends(volume: str) -> tuple[str, str]:
    source, _, rest = volume.partition(":")
    return source, rest.partition(":")[0] or source
