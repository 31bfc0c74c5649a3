"""Who has a port is named, with what to do about it."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from ironbell.base.ports import bind_problem, holder


@pytest.mark.parametrize(("protocol", "kind"), [("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)])
def test_the_program_that_has_the_port_is_named(protocol: str, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if protocol == "tcp":
            taken.listen()
        port = taken.getsockname()[1]
        assert holder(port, protocol).endswith(f" (process {os.getpid()})")
        with socket.socket(socket.AF_INET, kind) as other, pytest.raises(OSError) as caught:
            other.bind(("127.0.0.1", port))
    assert holder(port, protocol) == ""
    problem = bind_problem(caught.value, task="serve TFTP", protocol=protocol, port=port, remedy="choose another")
    assert problem == (f"Cannot serve TFTP: port {port} is in use by another program. Stop it, or choose another.")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EACCES, "this account is not allowed to. Run as root or with sudo, or choose another."),
        (errno.EADDRNOTAVAIL, "this machine does not have the address. Give one that `ip address` lists."),
        (errno.ENODEV, "this machine has no such interface. Give one that `ip link` lists."),
        (errno.EAFNOSUPPORT, "address family not supported by protocol."),
    ],
)
def test_other_reasons_name_what_to_do(number: int, expected: str) -> None:
    problem = bind_problem(OSError(number, "x"), task="serve HTTP", protocol="tcp", port=80, remedy="choose another")
    assert problem == f"Cannot serve HTTP: {expected}"
