"""Choice of the proxy for a server, by the environment's variables.

Source: golang.org/x/net: http/httpproxy (names, NO_PROXY's forms); kubernetes/client-go: transport/cache.go, where
proxies of the environment count unless the kubeconfig names one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from yarl import URL

from ironbell.kube.transport.tokens import ConnectionConfigError

SCHEMES = ("http", "https")


def checked_proxy(text: str, *, where: str) -> str:
    """A proxy's URL as it can be used.

    Raises:
        ConnectionConfigError: it is no URL, or of a scheme that is not supported. The URL may hold a password and is
            not repeated.
    """
    try:
        url = URL(text if "://" in text else f"http://{text}")
        host = url.host
    except ValueError:
        host = None
    if not host:
        raise ConnectionConfigError(f"{where}: the proxy must be a URL such as http://proxy.example:3128")
    if url.scheme not in SCHEMES:
        raise ConnectionConfigError(f"{where}: proxies of scheme {url.scheme!r} are not supported; use http or https")
    return str(url)


def environment_proxy(server: str, environment: Mapping[str, str]) -> str:
    """The proxy for a server's URL; empty to go there directly.

    Raises:
        ConnectionConfigError: the variable that applies holds no usable proxy.
    """
    url = URL(server)
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    text = environment.get(name) or environment.get(name.lower()) or ""
    if not text or not url.host:
        return ""
    if is_direct(url.host, url.port or 0, environment.get("NO_PROXY") or environment.get("no_proxy") or ""):
        return ""
    return checked_proxy(text, where=name)


def is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Return whether `NO_PROXY` (or being on this machine) exempts a host from the proxy."""
    host = host.lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, address, port) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    if entry in {"", "*"}:
        return entry == "*"
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, expected_port = _split_port(entry)
    if expected_port and expected_port != str(port):
        return False
    literal = _address(name)
    if literal is not None or address is not None:
        return literal == address
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    name, colon, port = entry.rpartition(":")
    return (name, port) if colon and ":" not in name else (entry, "")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
