"""Which of two ways a machine is known by: the token of its boot, or its address. The one home of that rule.

A site says `strict` (all by token), `compat` (all by agent id alone, as upstream) or, by default, `own`: by token where
our agent is sure to be the one that asks, and by address everywhere else. Nothing that is upstream's knows of tokens:
neither HookOS and its agent, nor a template that sends an installed system to its metadata. So a boot needs its token
only if its Template is one of ours, or if somebody says so:

- It has the annotation `ironbell.dev/identity: strict`, as the Templates have that we make (the default installation of
  a machine of a cluster, and the built-in wipes) and those of the library. Only our agent can carry these out: they
  use actions that exist nowhere else.
- Or its text names `@IRONBELL_METADATA_TOKEN@`, which nobody else fills in.

What a Template says is written on each Workflow of it as that is rendered, and there it stays: a Workflow that was
rendered before goes on as it began. A Workflow's own annotation counts before its Template's. What we make is marked
only where the boot gets its script from us, once (`gets_token`); another boot could never show a token.

Pure. docs/guide/safety.md tells what each way protects from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import BootMode, Workflow
from ironbell.contract.servers.boot_token import MARKED, PLACEHOLDER, Identity, is_marked, record_of
from ironbell.contract.servers.directory import normal_ip

IDENTITY: Final = "ironbell.dev/identity"
"""Annotation on a Template or a Workflow: how the machine of its boot is known (`strict` or `address`)."""
SUPERSEDED: Final = "ironbell.dev/boot-superseded"
"""Annotation on Hardware: the boot whose token counts no longer, since a Workflow by address has run there after it."""
KNOWN_BY: Final = "ironbell.dev/known-by"
"""Annotation on Hardware: how its agent was known last (a `Way`), and the address that it asked from."""
STRICT: Final = "strict"
BY_ADDRESS: Final = "address"

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Way(StrEnum):
    """How the machine is known that a Workflow's actions are handed out to."""

    TOKEN = "token"  # noqa: S105 - a way
    ADDRESS = "address"
    PROXY = "proxy"
    """By address, but it asks through a trusted proxy: nothing was compared."""
    UNKNOWN_ADDRESS = "unknown-address"
    """By address, but its Hardware has none: nothing was compared."""
    AGENT_ID = "agent-id"
    """By agent id alone, as upstream."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who speaks for a machine."""

    token: str = ""
    peer: str = ""
    """The address that the call comes from."""


def of_template(template: Template) -> str:
    """What the Workflows of a Template are marked with; empty where it says nothing, as upstream's."""
    said = template.metadata.annotations.get(IDENTITY, "").strip()
    return said or (STRICT if PLACEHOLDER in template.spec.data else "")


def requires_token(said: str) -> bool:
    """Whether the annotation's value asks for a token. One that nobody knows does: who wrote it wanted to be safe."""
    return said.strip() not in ("", BY_ADDRESS)


def needs_token(workflow: Workflow, site: Identity) -> bool:
    """Whether whoever speaks for a Workflow's machine must show the token of its boot."""
    if site is Identity.OWN:
        return requires_token(workflow.metadata.annotations.get(IDENTITY, ""))
    return site is Identity.STRICT


def gets_token(hardware: Hardware, *, toggles: bool, mode: str = "") -> bool:
    """Whether the agent of a boot can have a token: a Workflow gives the permission to netboot, and the script is ours.

    Args:
        hardware: the server.
        toggles: whether the Workflow gives the permission (`bootOptions.toggleAllowNetboot`).
        mode: how its BMC boots it (`bootOptions.bootMode`).
    """
    netboots = [interface.netboot for interface in hardware.spec.interfaces if interface.netboot is not None]
    has_own_script = any(one.ipxe is not None and (one.ipxe.url or one.ipxe.contents) for one in netboots)
    return toggles and mode in ("", BootMode.NETBOOT) and not has_own_script


def boot_mark(workflow: Workflow) -> str:
    """What the permission to netboot says besides the Workflow: where a site knows some of its machines by token, this
    boot is one of them."""
    return MARKED if requires_token(workflow.metadata.annotations.get(IDENTITY, "")) else ""


def metadata_needs_token(hardware: Hardware, site: Identity) -> bool:
    """Whether the system that is, or will be, on a server must show a token for its metadata: its last boot was given
    one, or the next will be. A token that was revoked opens nothing, and neither does the address."""
    if site is not Identity.OWN:
        return site is Identity.STRICT
    record = record_of(hardware)
    is_superseded = hardware.metadata.annotations.get(SUPERSEDED) == record.boot
    return is_marked(hardware) or (bool(record.boot) and not is_superseded)


def supersedes(workflow: Workflow, hardware: Hardware) -> dict[str, str]:
    """The annotation to write on a server that a Workflow by address has begun to run on: what it installs knows no
    token. Empty where none is to be written."""
    record = record_of(hardware)
    if requires_token(workflow.metadata.annotations.get(IDENTITY, "")) or record.boot in ("", workflow.metadata.uid):
        return {}
    return {} if hardware.metadata.annotations.get(SUPERSEDED) == record.boot else {SUPERSEDED: record.boot}


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks in CIDR notation.

    Raises:
        ValueError: one of them is neither; the message names it.
    """
    return tuple(ipaddress.ip_network(text.strip()) for text in texts)


def is_trusted(peer: str, proxies: Sequence[Network]) -> bool:
    """Whether a peer speaks for others, whose addresses are not seen."""
    address = _address(peer)
    return address is not None and any(address in network for network in proxies)


def addresses_of(hardware: Hardware) -> tuple[str, ...]:
    """The addresses of a server, as far as its Hardware has some."""
    found = (normal_ip(one.dhcp.ip.address) for one in hardware.spec.interfaces if one.dhcp and one.dhcp.ip)
    return tuple(dict.fromkeys(address for address in found if address))


def way(hardware: Hardware | None, peer: str, proxies: Sequence[Network]) -> Way:
    """How a machine is known that is known by its address."""
    if hardware is None or not addresses_of(hardware):
        return Way.UNKNOWN_ADDRESS
    return Way.PROXY if is_trusted(peer, proxies) else Way.ADDRESS


def address_objection(hardware: Hardware | None, peer: str, proxies: Sequence[Network]) -> str | None:
    """Why whoever calls from this address is not the machine; None if it is, or if nothing can be compared."""
    if hardware is None or way(hardware, peer, proxies) is not Way.ADDRESS:
        return None
    known, address = addresses_of(hardware), _address(peer)
    if address is not None and str(address) in known:
        return None
    return (
        f"identity by address: Hardware {hardware.metadata.name} has {', '.join(known)}, and not {peer}, which asks in "
        "its name; if that is its agent, correct spec.interfaces[].dhcp.ip.address, or name the proxy in between with "
        "--trusted-proxies"
    )


def forwarded_for(peer: str, header: str, proxies: Sequence[Network]) -> str:
    """The address that a request over HTTP comes from: the last one in `X-Forwarded-For` that is no trusted proxy, if
    the peer is one. Anybody else's header counts for nothing.

    Source: tinkerbell/tinkerbell: pkg/http (X-Forwarded-For).
    """
    if not is_trusted(peer, proxies):
        return peer
    named = [part.strip() for part in header.split(",") if part.strip()]
    return next((text for text in reversed(named) if not is_trusted(text, proxies)), named[0] if named else peer)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
