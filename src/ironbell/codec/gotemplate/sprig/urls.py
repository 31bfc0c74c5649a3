"""URLs, by Go's parser and printer.

Source: Masterminds/sprig v3.3.0: url.go; golang/go: src/net/url/url.go.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.values import decode, encode, kind_name

URLS = Library()
_add = URLS.add

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_HOST: Final = frozenset((_PLAIN + "!$&'()*+,;=:[]<>\"").encode())
_PATH: Final = frozenset((_PLAIN + "$&+,/:;=@").encode())
_USER: Final = frozenset((_PLAIN + "$&+,;=").encode())
_FRAGMENT: Final = frozenset((_PLAIN + "$&+,/:;=?@!()*").encode())
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_PERCENT = re.compile("%(..?)?", re.DOTALL)
_KEYS = ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo")


def _escape(text: str, allowed: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in allowed else f"%{byte:02X}" for byte in encode(text))


def _unescape(text: str, *, host: bool = False) -> str:
    """Decode percent escapes; a host's may stand only for bytes beyond ASCII, and for the percent sign itself."""

    def value(match: re.Match[str]) -> bytes:
        digits = match[1] or ""
        if not re.fullmatch("[0-9A-Fa-f]{2}", digits):
            raise CallError("unable to parse url: invalid URL escape")
        if host and int(digits, 16) < 0x80 and digits != "25":
            raise CallError("unable to parse url: invalid URL escape")
        return bytes((int(digits, 16),))

    result, position = bytearray(), 0
    for match in _PERCENT.finditer(text):
        result += encode(text[position : match.start()]) + value(match)
        position = match.end()
    if host and any(byte < 0x80 and byte not in _HOST and byte != 0x25 for byte in encode(text)):
        raise CallError("unable to parse url: invalid character in host name")
    return decode(bytes(result) + encode(text[position:]))


@_add("urlParse", P.STRING)
def _url_parse(text: str) -> dict[str, Any]:
    url, _, fragment = text.partition("#")
    if any(char < " " or char == "\x7f" for char in url):
        raise CallError("unable to parse url: invalid control character in URL")
    result = dict.fromkeys((*_KEYS, "hostname"), "")
    if url == "*":
        result["path"] = "*"
    else:
        _parse(url, result)
    result["fragment"] = _unescape(fragment)
    result["hostname"] = _hostname(result["host"])
    result.pop("has_user", None)
    return dict(result)


def _parse(url: str, result: dict[str, str]) -> None:
    if url.startswith(":"):
        raise CallError("unable to parse url: missing protocol scheme")
    scheme = _SCHEME.match(url)
    if scheme is not None:
        result["scheme"] = scheme.group()[:-1].lower()
        url = url[scheme.end() :]
    rest, _, result["query"] = url.partition("?")
    if not rest.startswith("/"):
        if result["scheme"]:
            result["opaque"] = rest
            return
        if ":" in rest.partition("/")[0]:
            raise CallError("unable to parse url: first path segment in URL cannot contain colon")
    if rest.startswith("//") and (result["scheme"] or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        userinfo, at, host = authority.rpartition("@")
        result["host"] = _host(host, result["scheme"])
        if at:
            result["userinfo"] = _userinfo(userinfo)
            result["has_user"] = at
    result["path"] = _unescape(rest)


def _userinfo(text: str) -> str:
    if not _USERINFO.fullmatch(text):
        raise CallError("unable to parse url: invalid userinfo")
    name, colon, password = text.partition(":")
    return _escape(_unescape(name), _USER) + colon + _escape(_unescape(password), _USER)


def _host(text: str, scheme: str) -> str:
    bracket = text.rfind("[")
    if bracket > 0:
        raise CallError("unable to parse url: invalid IP-literal")
    if bracket == 0:
        return _literal_host(text)
    first, last = text.find(":"), text.rfind(":")
    if first >= 0:
        start = first if first == last or scheme in ("http", "https") else last
        if not _PORT.fullmatch(text[start:]):
            raise CallError("unable to parse url: invalid port after host")
    return _unescape(text, host=True)


def _literal_host(text: str) -> str:
    closing = text.rfind("]")
    if closing < 0 or not _PORT.fullmatch(text[closing + 1 :]):
        raise CallError("unable to parse url: missing ']' or bad port in host")
    name, zone_mark, zone = text[1:closing].partition("%25")
    address = _unescape(name, host=True) + ("%" + _unescape(zone) if zone_mark else "")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise CallError("unable to parse url: invalid host") from None
    if parsed.version == 4:
        raise CallError("unable to parse url: invalid IP-literal")
    return f"[{address}]{text[closing + 1 :]}"


def _hostname(host: str) -> str:
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host = host[:colon]
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


@_add("urlJoin", P.MAP)
def _url_join(parts: dict[str, Any]) -> str:
    for key in _KEYS:
        value = parts.get(key, "")
        if not isinstance(value, str):
            raise CallError(f"unable to parse {key} key, must be of type string, but {kind_name(value)} found")
    scheme, host, path, query, opaque, fragment, userinfo = (str(parts.get(key, "")) for key in _KEYS)
    userinfo, has_user = _joined_userinfo(userinfo) if userinfo else ("", False)
    out = f"{scheme}:" if scheme else ""
    if opaque:
        out += opaque
    else:
        if (scheme or host or has_user) and (host or path or has_user):
            out += "//" + (f"{userinfo}@" if has_user else "") + _escape(host, _HOST)
        escaped = "*" if path == "*" else _escape(path, _PATH)
        if escaped and escaped[0] != "/" and host:
            out += "/"
        if not out and ":" in escaped.partition("/")[0]:
            out += "./"
        out += escaped
    out += f"?{query}" if query else ""
    return out + (f"#{_escape(fragment, _FRAGMENT)}" if fragment else "")


def _joined_userinfo(text: str) -> tuple[str, bool]:
    """The user's part as URLs write it, and whether there is one: what does not belong into it ends it."""
    result = dict.fromkeys((*_KEYS, "hostname"), "")
    url, _, fragment = f"proto://{text}@host".partition("#")
    if any(char < " " or char == "\x7f" for char in url):
        raise CallError("unable to parse userinfo in dict: invalid control character in URL")
    _parse(url, result)
    _unescape(fragment)
    return result["userinfo"], "has_user" in result
