"""Fetches a file by TFTP and waits for it, for the stand-in of firmware and for measurements.

Source: RFC 1350, 2347 to 2349, 7440.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import TFTP_PORT
from ironbell.codec.tftp import Download, Retransmission

PXE_OPTIONS: Final[Mapping[str, str]] = {"blksize": "1408", "tsize": "0"}
"""Options that a PXE ROM requests."""
_DATAGRAM: Final = 2048
_BUFFER: Final = 1 << 20


class TftpFailedError(IronbellError):
    """The transfer failed."""

    reason = "TftpFailed"
    retry = Retry.NEVER


def fetch(
    server: str, name: str, *, options: Mapping[str, str] = PXE_OPTIONS, patience: Retransmission | None = None
) -> bytes:
    """The file's content.

    Raises:
        TftpFailedError: the server rejected the request, or did not answer in time.
        OSError: nothing can be sent to the server.
    """
    where: tuple[str, int] = (server, TFTP_PORT)
    download = Download(name, where, options=dict(options), retransmission=patience or Retransmission())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        download.start(time.monotonic())
        while not download.is_finished:
            _send(sock, download)
            sock.settimeout(max(0.001, (download.timeout() or 0) - time.monotonic()))
            try:
                data, source = sock.recvfrom(_DATAGRAM)
            except TimeoutError:
                download.on_timeout(time.monotonic())
                continue
            download.receive(data, source, time.monotonic())
        _send(sock, download)
    if download.content is None:
        raise TftpFailedError(f"TFTP {name}: {download.failure}")
    return download.content


def _send(sock: socket.socket, download: Download[tuple[str, int]]) -> None:
    for data, to in download.outgoing():
        sock.sendto(data, to)
