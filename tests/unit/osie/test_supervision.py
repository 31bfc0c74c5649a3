"""What is said on consoles, and how an agent that ends is treated."""

from __future__ import annotations

import sys
from pathlib import Path

from ironbell.base.clock import ManualClock
from ironbell.osie.machine.agent import Reporter, describe, next_pause, run_once
from ironbell.osie.machine.cmdline import Arguments
from ironbell.osie.machine.console import Console, consoles
from ironbell.osie.machine.network import nics, parse_lease
from ironbell.osie.machine.trust import extend


def _console(folder: Path, *devices: Path, limit_bytes: int = 1 << 20) -> Console:
    return Console(devices=list(devices), log=folder / "log", clock=ManualClock(), limit_bytes=limit_bytes)


def test_says_everything_on_every_console_and_passes_over_the_missing(tmp_path: Path) -> None:
    first, second = tmp_path / "tty0", tmp_path / "ttyS0"
    for path in (first, second):
        path.touch()
    console = _console(tmp_path, first, tmp_path / "none", second)
    console.report("hello")
    assert first.read_bytes() == second.read_bytes() == b"ironbell [   0.00] hello\r\n"
    assert (tmp_path / "log").read_text() == "ironbell [   0.00] hello\n"


def test_the_log_does_not_grow_without_end(tmp_path: Path) -> None:
    console = _console(tmp_path, limit_bytes=1000)
    for number in range(1000):
        console.line(f"line {number}")
    assert (tmp_path / "log").stat().st_size < 1100
    assert (tmp_path / "log").read_text().endswith("line 999\n")


def test_finds_the_kernels_consoles(tmp_path: Path) -> None:
    (tmp_path / "active").write_text("tty0 ttyS1\n")
    assert consoles(tmp_path / "active") == [Path("/dev/tty0"), Path("/dev/ttyS1")]
    assert consoles(tmp_path / "none") == [Path("/dev/console")]


def test_shows_what_the_agent_printed_and_keeps_its_last_words(tmp_path: Path) -> None:
    console = _console(tmp_path)
    program = "import sys; print('working'); print('no server', file=sys.stderr); sys.exit(3)"
    status, tail = run_once([sys.executable, "-c", program], environment={}, console=console)
    assert status == 3
    assert sorted(tail) == ["no server", "working"]
    assert "no server" in (tmp_path / "log").read_text()


def test_an_agent_that_fails_at_once_waits_longer_each_time() -> None:
    pauses = [1.0]
    for _ in range(8):
        pauses.append(next_pause(pauses[-1], lived_s=0.1))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert next_pause(60, lived_s=120) == 1


def test_names_the_signal_that_ended_the_agent() -> None:
    assert describe(-9) == "was ended by SIGKILL"
    assert describe(-200) == "was ended by signal 200"
    assert describe(2) == "ended with status 2"


def test_reads_the_lease_that_the_dhcp_script_left() -> None:
    text = "ip=10.0.0.5\ndns=1.1.1.1 9.9.9.9\ndomain=example.org\nsearch=\nntpsrv=10.0.0.1\nserverid=10.0.0.2\n"
    lease = parse_lease(text, interface="eth0")
    assert (lease.address, lease.server) == ("10.0.0.5", "10.0.0.2")
    assert lease.name_servers == ("1.1.1.1", "9.9.9.9")
    assert lease.search == ("example.org",)
    assert lease.time_servers == ("10.0.0.1",)


def test_counts_only_interfaces_made_of_hardware(tmp_path: Path) -> None:
    for name, has_device, kind in (("eth0", True, "1"), ("lo", False, "772"), ("ib0", True, "32"), ("br0", False, "1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "type").write_text(kind + "\n")
        (tmp_path / name / "address").write_text("02:AA:00:00:00:01\n")
        if has_device:
            (tmp_path / name / "device").mkdir()
    assert [(nic.name, nic.mac) for nic in nics(tmp_path)] == [("eth0", "02:aa:00:00:00:01")]


def test_trusts_the_authority_handed_over_in_the_boot_chain(tmp_path: Path) -> None:
    bundle, handed = tmp_path / "bundle", tmp_path / "ca.pem"
    bundle.write_text("A\n")
    handed.write_text("B\n")
    extend(Arguments(), _console(tmp_path), bundle=bundle, from_boot=handed)
    assert bundle.read_text().split() == ["A", "B"]


def test_does_not_fetch_an_authority_without_its_digest(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.write_text("A\n")
    extend(Arguments(ca_url="http://127.0.0.1:1/ca"), _console(tmp_path), bundle=bundle, from_boot=tmp_path / "none")
    assert bundle.read_text() == "A\n"
    assert "ca_sha256" in (tmp_path / "log").read_text()


def test_an_authority_that_cannot_be_fetched_is_said_and_the_boot_goes_on(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.write_text("A\n")
    arguments = Arguments(ca_url="file:///etc/passwd", ca_sha256="00")
    extend(arguments, _console(tmp_path), bundle=bundle, from_boot=tmp_path / "none")
    assert bundle.read_text() == "A\n"
    assert "must begin with http" in (tmp_path / "log").read_text()


def test_a_failure_is_reported_one_at_a_time(tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + '|')"
    reporter = Reporter({}, command=[sys.executable, "-c", code])
    reporter.send("agent ended with status 1")
    reporter.send("not sent: the first is on its way")
    assert reporter._running is not None
    reporter._running.wait(timeout=20)
    assert told.read_text() == "agent ended with status 1|"
    reporter.send("again")
    reporter._running.wait(timeout=20)
    assert told.read_text().endswith("|again|")
