"""Sockets that outlive the process which serves them: a child passes its bound sockets to its parent, which passes them
to the child's successor.

So while a server is restarted, packets of machines wait in the kernel instead of being rejected: firmware and iPXE give
up at the first rejection, and a machine that has given up may need a person to restart it. The parent never reads from
these sockets.

Names and numbers travel in the environment, descriptors by inheritance and over a socket pair. Source: systemd's file
descriptor store (sd_notify(3), sd_listen_fds(3)), whose idea this is.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence

import msgspec

VARIABLE = "IRONBELL_KEPT_SOCKETS"
CHANNEL = "channel"
MAX_SOCKETS = 32
MAX_NAMES = 4096


class Keeper:
    """The parent's side: the sockets that the last child passed on, for the next child."""

    def __init__(self) -> None:
        self._kept: dict[str, socket.socket] = {}
        self._channel: socket.socket | None = None

    def prepare(self) -> tuple[dict[str, str], tuple[int, ...], socket.socket]:
        """Prepare the start of a child: return its environment, the descriptors that it inherits, and the end of the
        channel that the caller closes once the child runs."""
        self._close_channel()
        self._channel, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        numbers = {name: sock.fileno() for name, sock in self._kept.items()} | {CHANNEL: child_end.fileno()}
        return {VARIABLE: msgspec.json.encode(numbers).decode()}, tuple(numbers.values()), child_end

    def take(self) -> None:
        """Take over the sockets that the child has passed on, if any. Anything else is closed: the child may have been
        taken over."""
        if self._channel is None:
            return
        try:
            message, descriptors, _, _ = socket.recv_fds(self._channel, MAX_NAMES, MAX_SOCKETS)
        except OSError:
            return
        sockets = _named(message, descriptors)
        if sockets is not None:
            self.forget()
            self._kept = sockets

    def forget(self) -> None:
        """Close the kept sockets: the next child binds new ones."""
        for sock in self._kept.values():
            sock.close()
        self._kept = {}

    def close(self) -> None:
        """Close everything."""
        self.forget()
        self._close_channel()

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _named(message: bytes, descriptors: Sequence[int]) -> dict[str, socket.socket] | None:
    """Sockets by name; None, and all closed, if names are missing or a descriptor is not a socket."""
    sockets: list[socket.socket] = []
    try:
        names = msgspec.json.decode(message, type=list[str])
        sockets.extend(socket.socket(fileno=number) for number in descriptors)
        return dict(zip(names, sockets, strict=True))
    except (OSError, ValueError, msgspec.MsgspecError):
        for sock in sockets:
            sock.close()
        for number in descriptors[len(sockets) :]:
            os.close(number)
        return None


def inherited() -> dict[str, socket.socket]:
    """The child's side: the sockets of its predecessor by name; none at the first start, or without such a parent."""
    sockets = {}
    for name, number in _numbers().items():
        if name != CHANNEL:
            sock = socket.socket(fileno=number)
            sock.set_inheritable(False)
            sock.setblocking(False)
            sockets[name] = sock
    return sockets


def hand_up(sockets: Mapping[str, socket.socket]) -> None:
    """Pass these sockets to the parent, if it keeps sockets. Call it before reporting anything."""
    number = _numbers().get(CHANNEL)
    os.environ.pop(VARIABLE, None)
    if number is None:
        return
    with socket.socket(fileno=number) as channel, contextlib.suppress(OSError):
        names = msgspec.json.encode(list(sockets))
        socket.send_fds(channel, [names], [sock.fileno() for sock in sockets.values()])


def _numbers() -> dict[str, int]:
    try:
        return msgspec.json.decode(os.environ.get(VARIABLE, "{}"), type=dict[str, int])
    except msgspec.MsgspecError:
        return {}
