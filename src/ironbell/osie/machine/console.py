"""Prints messages where a person can see them: every console of the machine, a file, and syslog.

The kernel prints to all consoles named by `console=`, a process only to the last one. A serial port that nobody reads
must not stop the boot, so consoles are written without waiting, and output that they do not accept is lost.

Failure modes: a console that does not exist or blocks is skipped; syslog is sent once and not confirmed.

Source: RFC 3164 (the format that receivers of both formats accept).
"""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

from ironbell.base.clock import Clock, SystemClock
from ironbell.base.ports import SYSLOG_PORT

ACTIVE_CONSOLES = Path("/sys/class/tty/console/active")
_LOG_LIMIT_BYTES = 4 << 20
_SYSLOG_DAEMON_NOTICE = 3 * 8 + 5
_MAX_DATAGRAM = 8192


class Console:
    """The one sink for messages of the boot stage and the agent. Safe to use from several threads."""

    def __init__(
        self, *, devices: list[Path], log: Path, clock: Clock | None = None, limit_bytes: int = _LOG_LIMIT_BYTES
    ) -> None:
        self._devices = devices
        self._log = log
        self._clock = clock or SystemClock()
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._syslog: tuple[socket.socket, tuple[str, int]] | None = None
        self._hostname = "osie"

    def send_to_syslog(self, host: str, *, hostname: str) -> None:
        """Also send every line to a syslog server over UDP, under this host's name."""
        address, _, port = host.partition(":")
        number = int(port) if port.isdecimal() else SYSLOG_PORT
        self._hostname = hostname
        self._syslog = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM), (address, number))

    def report(self, text: str) -> None:
        """Print a line of our own, with the seconds since boot."""
        self.line(f"ironbell [{self._clock.monotonic():7.2f}] {text}")

    def line(self, text: str) -> None:
        """Print a line unchanged."""
        encoded = text.encode("utf-8", "replace")
        with self._lock:
            for device in self._devices:
                _write(device, encoded + b"\r\n")
            self._append_to_log(encoded + b"\n")
            self._transmit(text)

    def _append_to_log(self, data: bytes) -> None:
        try:
            if self._log.exists() and self._log.stat().st_size > self._limit_bytes:
                self._log.replace(self._log.with_suffix(".old"))
            with self._log.open("ab") as stream:
                stream.write(data)
        except OSError:
            return

    def _transmit(self, text: str) -> None:
        if self._syslog is None:
            return
        stamp = self._clock.now().strftime("%b %e %H:%M:%S")
        datagram = f"<{_SYSLOG_DAEMON_NOTICE}>{stamp} {self._hostname} ironbell: {text}".encode()[:_MAX_DATAGRAM]
        connection, address = self._syslog
        try:
            connection.sendto(datagram, socket.MSG_DONTWAIT, address)
        except (OSError, OverflowError, UnicodeError):
            # OverflowError and UnicodeError: a port or a host name that is not valid.
            return


def consoles(active: Path = ACTIVE_CONSOLES) -> list[Path]:
    """The devices behind the kernel's consoles; `/dev/console` where the kernel does not list them."""
    try:
        names = active.read_text().split()
    except OSError:
        names = []
    return [Path("/dev", name) for name in names] or [Path("/dev/console")]


def _write(device: Path, data: bytes) -> None:
    try:
        descriptor = os.open(device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return
    finally:
        os.close(descriptor)
