"""Sets the clock before any certificate is checked against it.

A machine that was in storage for two years has the wrong time, and then every certificate is expired or not yet
valid. The sources, in this order: the network's time servers (DHCP option 42 or `ipam=`) by SNTP; the boot script
(`ironbell.time=`); the boot server's hosts by the Date of an HTTP response. Where none answers, the hardware clock
stays, unless it is earlier than the date of this image.

Failure modes: a server that does not answer in time, or with an invalid answer, is skipped.

Source: RFC 4330 section 4 and 5 (SNTP); RFC 9110 section 6.6.1 (Date).
"""

from __future__ import annotations

import http.client
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ironbell.base.clock import Clock
from ironbell.base.ports import HTTP_PORT, NTP_PORT, UPSTREAM_HTTP_PORTS, UPSTREAM_METADATA_PORT, WEB_PORT

_NTP_EPOCH_OFFSET = 2_208_988_800
_NTP_ERA_SECONDS = 1 << 32
_SNTP_REQUEST = struct.pack("!B47x", 0x23)
_SNTP_TIMEOUT_S = 2.0
_HTTP_TIMEOUT_S = 3.0
_MODE_SERVER = 4
_LEAP_UNKNOWN = 3
# A smaller step is not made: certificates do not need it, and logs stay in order.
_TOLERANCE_S = 2.0
# Ports of HTTP servers of ours or upstream's: boot files, metadata, and upstream's older metadata.
HTTP_PORTS = (*UPSTREAM_HTTP_PORTS, WEB_PORT, HTTP_PORT, UPSTREAM_METADATA_PORT)


@dataclass(frozen=True)
class Reading:
    """A moment in Unix seconds, and the source that reported it."""

    unix_s: float
    source: str


def parse_sntp(packet: bytes) -> float | None:
    """Unix seconds of a server's answer; None if the answer is not usable."""
    if len(packet) < 48:
        return None
    leap, mode, stratum = packet[0] >> 6, packet[0] & 7, packet[1]
    seconds, fraction = struct.unpack("!II", packet[40:48])
    if mode != _MODE_SERVER or leap == _LEAP_UNKNOWN or not 1 <= stratum <= 15 or seconds == 0:
        return None
    # RFC 4330 section 3: values without the top bit belong to the era that begins in 2036.
    era = 0 if seconds & 0x8000_0000 else _NTP_ERA_SECONDS
    return float(seconds + era - _NTP_EPOCH_OFFSET + fraction / 2**32)


def parse_http_date(text: str) -> float | None:
    """Unix seconds of a Date header; None if it is not a date."""
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (OverflowError, ValueError):
        return None


def query_sntp(host: str) -> Reading | None:
    """Query one time server once."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
            connection.settimeout(_SNTP_TIMEOUT_S)
            connection.connect((host, NTP_PORT))
            connection.send(_SNTP_REQUEST)
            seconds = parse_sntp(connection.recv(512))
    except OSError:
        return None
    return Reading(seconds, f"time server {host}") if seconds is not None else None


def query_http(host: str, port: int) -> Reading | None:
    """The Date of a web server's response, whatever its status."""
    connection = http.client.HTTPConnection(host, port, timeout=_HTTP_TIMEOUT_S)
    try:
        connection.request("HEAD", "/")
        text = connection.getresponse().getheader("Date", "")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    seconds = parse_http_date(text)
    return Reading(seconds, f"{host}:{port}") if seconds is not None else None


def read_time(
    *, time_servers: Iterable[str], hosts: Iterable[str], script_unix_s: int, clock: Clock, budget_s: float = 12.0
) -> Reading | None:
    """The first answer, in the order of trust. Servers that stay silent cost no more than the budget together."""
    deadline = clock.monotonic() + budget_s
    for server in time_servers:
        if clock.monotonic() < deadline and (reading := query_sntp(server)):
            return reading
    if script_unix_s > 0:
        return Reading(float(script_unix_s), "the boot script")
    for host in hosts:
        for port in HTTP_PORTS:
            if clock.monotonic() < deadline and (reading := query_http(host, port)):
                return reading
    return None


def correction(*, now_unix_s: float, reading: Reading | None, built_unix_s: float) -> Reading | None:
    """The reading to set the clock to; None if the clock stays unchanged."""
    if reading is not None and reading.unix_s >= built_unix_s:
        return reading if abs(reading.unix_s - now_unix_s) > _TOLERANCE_S else None
    if now_unix_s < built_unix_s:
        return Reading(built_unix_s, "the date of this image")
    return None


def set_clock(unix_s: float) -> None:
    """Set the system's clock.

    Raises:
        OSError: this process may not set the clock.
    """
    time.clock_settime(time.CLOCK_REALTIME, unix_s)


def describe(unix_s: float) -> str:
    """A moment as text for people."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
