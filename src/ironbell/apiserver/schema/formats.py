"""Formats of strings (`format:` in a schema). Formats not listed here are not checked, as in Kubernetes.

Source: kubernetes/kube-openapi: pkg/validation/strfmt/default.go.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from ironbell.codec.durations import DurationError, parse_duration

_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)([.,]\d+)?([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_HOST_LABEL = r"[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?"
_HOSTNAME = re.compile(rf"(?=.{{1,255}}$){_HOST_LABEL}(\.{_HOST_LABEL})*\.?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_MAC = re.compile(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}")
_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _is_date_time(text: str) -> bool:
    return _DATE_TIME.fullmatch(text) is not None and _is_date(text[:10])


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except DurationError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_uri(text: str) -> bool:
    # Go's url.ParseRequestURI: an absolute URI or an absolute path, without a bare space or control character.
    if not text or any(ord(char) < 0x21 or ord(char) == 0x7F for char in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return text.rsplit("/", 1)[1].isdigit()


_CHECKS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "date": _is_date,
    "uri": _is_uri,
    "byte": _is_byte,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "duration": _is_duration,
}


def format_check(name: str) -> Callable[[str], bool] | None:
    """The check of a string format, or None if it is not checked."""
    return _CHECKS.get(name)


def integer_range(name: str) -> tuple[int, int] | None:
    """The least and greatest value of an integer format."""
    return _INTEGER_RANGES.get(name)
