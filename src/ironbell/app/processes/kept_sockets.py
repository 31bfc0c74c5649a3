"""Sockets that outlive the process which serves them: a child hands its bound sockets to its parent, which hands them
to the child's successor.

So while a server is started again, what machines send waits in the kernel instead of being refused: firmware and iPXE
give up at the first refusal, and a machine that has given up may stand still until somebody comes. The parent never
reads from these sockets.

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
    """The parent's side: what the last child left, to be given to the next."""

    def __init__(self) -> None:
        self._kept: dict[str, socket.socket] = {}
        self._channel: socket.socket | None = None

    def prepare(self) -> tuple[dict[str, str], tuple[int, ...], socket.socket]:
        """For a child about to start: its environment, the descriptors that it inherits, and the end of the channel
        that the caller closes once the child runs."""
        self._close_channel()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        numbers = {name: sock.fileno() for name, sock in self._kept.items()} | {CHANNEL: theirs.fileno()}
        return {VARIABLE: msgspec.json.encode(numbers).decode()}, tuple(numbers.values()), theirs

    def take(self) -> None:
        """Take over what the child has handed up, if anything. What makes no sense is closed: a child may be in the
        hands of a stranger."""
        if self._channel is None:
            return
        try:
            message, descriptors, _, _ = socket.recv_fds(self._channel, MAX_NAMES, MAX_SOCKETS)
        except OSError:
            return
        found = _named(message, descriptors)
        if found is not None:
            self.forget()
            self._kept = found

    def forget(self) -> None:
        """Close what is kept: the next child binds anew."""
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
    """Sockets by their names; None, and all closed, where names are missing or something is no socket."""
    made: list[socket.socket] = []
    try:
        names = msgspec.json.decode(message, type=list[str])
        made.extend(socket.socket(fileno=number) for number in descriptors)
        return dict(zip(names, made, strict=True))
    except (OSError, ValueError, msgspec.MsgspecError):
        for sock in made:
            sock.close()
        for number in descriptors[len(made) :]:
            os.close(number)
        return None


def inherited() -> dict[str, socket.socket]:
    """The child's side: sockets of its predecessor, by name; none at the first start, or without such a parent."""
    found = {}
    for name, number in _numbers().items():
        if name != CHANNEL:
            sock = socket.socket(fileno=number)
            sock.set_inheritable(False)
            sock.setblocking(False)
            found[name] = sock
    return found


def hand_up(sockets: Mapping[str, socket.socket]) -> None:
    """Let the parent keep these sockets; nothing happens without such a parent. Call it before reporting anything."""
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
