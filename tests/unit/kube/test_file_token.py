"""Tokens in files: kept for a while, read again at once when the server refuses them."""

from __future__ import annotations

from pathlib import Path

from ironbell.base.clock import ManualClock
from ironbell.kube.transport.connection import Connection, FileToken


async def test_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    connection = Connection("http://localhost", token=FileToken(file, clock=ManualClock()))
    assert dict(await connection.headers())["Authorization"] == "Bearer old"
    file.write_text("new\n")
    assert dict(await connection.headers())["Authorization"] == "Bearer old"
    connection.on_rejection()
    assert dict(await connection.headers())["Authorization"] == "Bearer new"


async def test_connection_without_a_file_takes_a_refusal_as_it_is() -> None:
    Connection("http://localhost").on_rejection()
