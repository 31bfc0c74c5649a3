"""What is said at boot reaches the consoles, whatever the syslog host on the command line is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.osie.machine.console import Console


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "x" * 80, "a..b", "127.0.0.1:port"])
def test_an_impossible_syslog_host_does_not_end_the_boot(host: str, tmp_path: Path) -> None:
    console = Console(devices=[], log=tmp_path / "log")
    console.send_to_syslog(host, hostname="m")
    console.line("still here")
    assert (tmp_path / "log").read_text() == "still here\n"
    if console._syslog is not None:
        console._syslog[0].close()
