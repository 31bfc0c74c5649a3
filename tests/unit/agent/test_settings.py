"""Where the agent learns whom to ask, and as whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.agent.settings import Settings, SettingsError, parse_cmdline, read_boot_id, resolve

CMDLINE = (
    "facility=onprem syslog_host=10.0.0.2 grpc_authority=10.0.0.2:42113 tinkerbell_tls=false worker_id=w-1 "
    'hw_addr=52:54:00:00:00:01 modules=loop intel_iommu=on console=tty0 console=ttyS1,115200 note="a b"'
)


def settings(*arguments: str, cmdline: str = "", **environment: str) -> Settings:
    return resolve(arguments, environment=environment, cmdline=parse_cmdline(cmdline), boot_id="b")


def test_upstream_s_kernel_arguments_are_enough():
    found = settings(cmdline=CMDLINE)
    assert (found.agent_id, found.host, found.port, found.tls, found.verifies_tls) == (
        "w-1", "10.0.0.2", 42113, False, True,
    )  # fmt: skip
    assert parse_cmdline(CMDLINE)["console"] == "ttyS1,115200"
    assert parse_cmdline(CMDLINE)["note"] == "a b"


def test_the_mac_stands_in_for_a_missing_id():
    assert settings(cmdline="hw_addr=52:54:00:00:00:01 grpc_authority=h").agent_id == "52:54:00:00:00:01"


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ((), {"WORKER_ID": "old"}, "old"),
        ((), {"WORKER_ID": "old", "AGENT_ID": "new"}, "new"),
        (("-id", "flag"), {"AGENT_ID": "new"}, "flag"),
        (("--id=flag",), {}, "flag"),
    ],
)
def test_the_later_source_wins(arguments, environment, expected):
    assert settings(*arguments, cmdline=CMDLINE, **environment).agent_id == expected


def test_flags_of_upstream_s_agent_are_accepted():
    found = settings(
        "-runtime", "containerd", "-transport", "grpc", "-grpc-server", "[::1]:7", "--grpc-tls", "-log-level=1",
        "--tinkerbell-insecure-tls=true", "-backoff-max-interval", "1m2.5s", "-id", "x", "-attribute-detection=false",
    )  # fmt: skip
    assert (found.host, found.port, found.tls, found.verifies_tls) == ("::1", 7, True, False)
    assert (found.backoff_max_s, found.detects_attributes) == (62.5, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("h", ("h", 42113)), ("h:1", ("h", 1)), ("fe80::1", ("fe80::1", 42113)), ("[fe80::1]:2", ("fe80::1", 2))],
)
def test_addresses(text, expected):
    found = settings("-id", "x", "-grpc-server", text)
    assert (found.host, found.port) == expected


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("-id", "x"), "grpc_authority="),
        (("-grpc-server", "h"), "worker_id="),
        (("-id", "x", "-grpc-server", "h:0"), "HOST:PORT"),
        (("-id", "x", "-grpc-server", "h:99999"), "HOST:PORT"),
        (("-id", "x", "-grpc-server", "h", "-grpc-tls", "maybe"), "true or false"),
        (("-id", "x", "-grpc-server", "h", "-backoff-max-interval", "5"), "5s"),
    ],
)
def test_what_is_missing_or_wrong_is_named(arguments, part):
    with pytest.raises(SettingsError, match=part.replace("(", "\\(")):
        settings(*arguments)


@given(st.text())
def test_any_command_line_is_read(text):
    assert isinstance(parse_cmdline(text), dict)


def test_a_boot_has_a_name_or_gets_one(tmp_path):
    (tmp_path / "id").write_text("abc\n")
    assert read_boot_id({}, tmp_path / "id") == "abc"
    assert read_boot_id({"IRONBELL_BOOT_ID": "given"}, tmp_path / "id") == "given"
    assert read_boot_id({}, tmp_path / "none") == ""
