"""Network errors in words for people."""

from __future__ import annotations

import errno
import socket

from ironbell.base.errors import os_problem


def test_no_python_types_and_numbers() -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 443)")
    assert os_problem(refused) == "connection refused"
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert os_problem(unknown) == "Name or service not known"
    assert os_problem(TimeoutError("timed out")) == "timed out"
