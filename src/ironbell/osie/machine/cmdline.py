"""The kernel's command line: upstream's arguments and ours, read once at boot.

Unknown arguments are ignored; an argument without `=` or with an empty value is treated as unset, where upstream's
readers crash on it.

Source: tinkerbell/hook: images/hook-bootkit, files/; kernel: Documentation/admin-guide/kernel-parameters.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_TRUE = frozenset({"true", "1", "yes", "t"})
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


@dataclass(frozen=True)
class Arguments:
    """The arguments of the boot script for this machine. An empty text is unset."""

    grpc_authority: str = ""
    worker_id: str = ""
    hw_addr: str = ""
    vlan_id: str = ""
    interface: str = ""
    ipam: str = ""
    syslog_host: str = ""
    has_tls: bool = False
    has_insecure_tls: bool = False
    proxies: dict[str, str] = field(default_factory=dict)
    unix_time: int = 0
    """The boot server's clock when it wrote the script; 0 if unset."""
    ca_url: str = ""
    ca_sha256: str = ""
    raw: dict[str, str] = field(default_factory=dict)


def split(text: str) -> dict[str, str]:
    """Name and value of every argument; the last one is used. Double quotes protect spaces, as in the kernel."""
    values: dict[str, str] = {}
    for word in re.findall(r'(?:[^\s"]|"[^"]*"?)+', text):
        name, _, value = word.partition("=")
        values[name.strip('"')] = value.replace('"', "")
    return values


def parse(text: str, *, built_in_proxy: str = "") -> Arguments:
    """The command line as arguments. Never fails: a value that is not valid is treated as unset.

    `built_in_proxy` is used where the command line names no proxy.
    """
    raw = split(text)
    mac = raw.get("hw_addr", "").lower().replace("-", ":")
    return Arguments(
        grpc_authority=raw.get("grpc_authority", ""),
        worker_id=raw.get("worker_id", "") or mac,
        hw_addr=mac if _MAC.fullmatch(mac) else "",
        vlan_id=_vlan(raw.get("vlan_id", "")),
        interface=raw.get("interface", ""),
        ipam=raw.get("ipam", ""),
        syslog_host=raw.get("syslog_host", ""),
        has_tls=raw.get("tinkerbell_tls", "").lower() in _TRUE,
        has_insecure_tls=raw.get("tinkerbell_insecure_tls", "").lower() in _TRUE,
        proxies=_proxies(raw) or _everywhere(built_in_proxy),
        unix_time=int(seconds) if (seconds := raw.get("ironbell.time", "")).isascii() and seconds.isdecimal() else 0,
        ca_url=raw.get("ironbell.ca_url", ""),
        ca_sha256=raw.get("ironbell.ca_sha256", "").lower(),
        raw=raw,
    )


def _vlan(text: str) -> str:
    """A VLAN number that can be tagged; upstream's pattern allows 0 and lists, of which the first is used."""
    first = text.partition(",")[0]
    is_number = first.isascii() and first.isdecimal()
    return first if is_number and 1 <= int(first) <= 4094 else ""


def _proxies(raw: dict[str, str]) -> dict[str, str]:
    pairs = ((name, raw.get(name) or raw.get(name.lower(), "")) for name in PROXY_NAMES)
    return {name: value for name, value in pairs if value}


def _everywhere(proxy: str) -> dict[str, str]:
    return {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy} if proxy else {}


def agent_environment(arguments: Arguments) -> dict[str, str]:
    """The agent's environment, with the names that HookOS passes to its agent."""
    flags = {True: "true", False: "false"}
    values = {
        "TINKERBELL_GRPC_AUTHORITY": arguments.grpc_authority,
        "TINKERBELL_TLS": flags[arguments.has_tls],
        "TINKERBELL_INSECURE_TLS": flags[arguments.has_insecure_tls],
        "WORKER_ID": arguments.worker_id,
        "ID": arguments.worker_id,
        "HW_ADDR": arguments.hw_addr,
        "SYSLOG_HOST": arguments.syslog_host,
    }
    for name, value in arguments.proxies.items():
        values[name] = value
        values[name.lower()] = value
    return {name: value for name, value in values.items() if value}
