"""Identification of a machine by the token of its boot, or by its address. The one home of that rule.

The identity of a site is `strict` (all by token), `compat` (all by agent id alone, as upstream) or, by default, `own`:
by token where the client is certainly our agent, and by address everywhere else. Upstream's software has no tokens:
neither HookOS and its agent, nor a template that sends an installed system to its metadata. So a boot needs its token
only if its Template requires one:

- It has the annotation `ironbell.dev/identity: strict`, as the Templates have that we create (the default installation
  of a machine of a cluster, and the built-in wipes) and those of the library. Only our agent can carry these out: they
  use actions that exist nowhere else.
- Or its text names `@IRONBELL_METADATA_TOKEN@`, which nobody else fills in.

A Workflow gets its Template's annotation when it is rendered, and keeps it: a change of the Template does not affect
it. A Workflow's own annotation takes precedence over its Template's. Our own Templates are marked only if the boot gets
its script from us, once (`gets_token`); another boot could never show a token.

Pure. docs/guide/safety.md lists the attacks that each way prevents.
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
"""Annotation on a Template or a Workflow: identification of the machine of its boot (`strict` or `address`)."""
SUPERSEDED: Final = "ironbell.dev/boot-superseded"
"""Annotation on Hardware: the boot whose token is void, since a Workflow by address has run there after it."""
KNOWN_BY: Final = "ironbell.dev/known-by"
"""Annotation on Hardware: last identification of its agent (a `Way`), and the agent's address."""
STRICT: Final = "strict"
BY_ADDRESS: Final = "address"

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class Way(StrEnum):
    """Way by which the machine of a Workflow is identified."""

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
    """Credentials of a client that acts for a machine."""

    token: str = ""
    peer: str = ""
    """The address that the call comes from."""


def of_template(template: Template) -> str:
    """Return the mark for Workflows of a Template; empty without one, as for upstream's."""
    value = template.metadata.annotations.get(IDENTITY, "").strip()
    return value or (STRICT if PLACEHOLDER in template.spec.data else "")


def requires_token(value: str) -> bool:
    """Return whether the annotation's value requires a token. An unknown value does, which is the safe reading."""
    return value.strip() not in ("", BY_ADDRESS)


def needs_token(workflow: Workflow, site: Identity) -> bool:
    """Return whether a client that acts for a Workflow's machine must show the token of its boot."""
    if site is Identity.OWN:
        return requires_token(workflow.metadata.annotations.get(IDENTITY, ""))
    return site is Identity.STRICT


def gets_token(hardware: Hardware, *, toggles: bool, mode: str = "") -> bool:
    """Return whether the agent of a boot can have a token: a Workflow permits the netboot, and the script is ours.

    Args:
        hardware: the server.
        toggles: whether the Workflow gives the permission (`bootOptions.toggleAllowNetboot`).
        mode: how its BMC boots it (`bootOptions.bootMode`).
    """
    netboots = [interface.netboot for interface in hardware.spec.interfaces if interface.netboot is not None]
    has_own_script = any(netboot.ipxe and (netboot.ipxe.url or netboot.ipxe.contents) for netboot in netboots)
    return toggles and mode in ("", BootMode.NETBOOT) and not has_own_script


def boot_mark(workflow: Workflow) -> str:
    """Return the mark in the permission to netboot: at a site that identifies some of its machines by token, this boot
    is one of them."""
    return MARKED if requires_token(workflow.metadata.annotations.get(IDENTITY, "")) else ""


def metadata_needs_token(hardware: Hardware, site: Identity) -> bool:
    """Return whether the current or next system on a server must show a token for its metadata: its last boot got
    one, or the next will get one. A token that was revoked opens nothing, and neither does the address."""
    if site is not Identity.OWN:
        return site is Identity.STRICT
    record = record_of(hardware)
    is_superseded = hardware.metadata.annotations.get(SUPERSEDED) == record.boot
    return is_marked(hardware) or (bool(record.boot) and not is_superseded)


def supersedes(workflow: Workflow, hardware: Hardware) -> dict[str, str]:
    """Return the annotation for a server on which a Workflow by address has begun to run: the system that it installs
    has no token. Empty if the annotation is not needed."""
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
    """Return whether a peer forwards requests of others, whose addresses are not visible."""
    address = _address(peer)
    return address is not None and any(address in network for network in proxies)


def addresses_of(hardware: Hardware) -> tuple[str, ...]:
    """The addresses of a server, as far as its Hardware has some."""
    dhcp = (interface.dhcp for interface in hardware.spec.interfaces)
    addresses = (normal_ip(entry.ip.address) for entry in dhcp if entry and entry.ip)
    return tuple(dict.fromkeys(address for address in addresses if address))


def way(hardware: Hardware | None, peer: str, proxies: Sequence[Network]) -> Way:
    """Return the way by which a machine without a token is identified."""
    if hardware is None or not addresses_of(hardware):
        return Way.UNKNOWN_ADDRESS
    return Way.PROXY if is_trusted(peer, proxies) else Way.ADDRESS


def address_objection(hardware: Hardware | None, peer: str, proxies: Sequence[Network]) -> str | None:
    """Return why a client at this address is not the machine; None if it is, or if nothing can be compared."""
    if hardware is None or way(hardware, peer, proxies) is not Way.ADDRESS:
        return None
    known, address = addresses_of(hardware), _address(peer)
    if address is not None and str(address) in known:
        return None
    return (
        f"identity by address: Hardware {hardware.metadata.name} has {', '.join(known)}, and not {peer}, which sends "
        "requests in its name; if that is its agent, correct spec.interfaces[].dhcp.ip.address, or name the proxy in "
        "between with --trusted-proxies"
    )


def forwarded_for(peer: str, header: str, proxies: Sequence[Network]) -> str:
    """Return the address that a request over HTTP comes from: the last one in `X-Forwarded-For` that is not a trusted
    proxy, if the peer is one. The header of any other peer is ignored.

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
