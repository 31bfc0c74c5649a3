"""`-o json`: which commands have it, and what an error looks like."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ironbell.cli import main as entry
from ironbell.cli.output import requests_json
from ironbell.operations.progress import StillWaitingError
from support.site.commands import all_commands

WITHOUT = {
    "up": "runs until it is ended",
    "run": "runs until it is ended",
    "demo": "is a demonstration for people on a terminal",
    "completion": "prints a shell's script",
    "crds": "prints manifests, which are its result",
    "template render": "prints a document, which is its result",
    "lab manifests": "prints manifests, which are its result",
    "lab console": "prints a machine's bytes",
}


def _has_json(command: click.Command) -> bool:
    return any(
        "-o" in parameter.opts and isinstance(parameter.type, click.Choice) and "json" in parameter.type.choices
        for parameter in command.params
    )


def test_every_command_has_json_or_a_reason_why_not() -> None:
    commands = all_commands()
    assert len(commands) > 35
    assert {name for name, command in commands.items() if not _has_json(command)} == WITHOUT.keys()


def _ended(monkeypatch: pytest.MonkeyPatch, words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ironbell", *words.split()])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    try:
        entry.main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ("cluster scale a --workers 1 -o json", 1, "NoKubeconfig"),
        ("cluster delete a --output json", 1, "NoKubeconfig"),
        ("hardware confirm a -ojson", 1, "NoKubeconfig"),
        ("pool confirm -o json", 2, "UsageError"),
        ("cluster scale a -o json --worker 1", 2, "NoSuchOption"),
        ("uninstall --output=json", 1, "Abort"),
        ("ipxe build --format json --source nowhere", 2, "BadParameter"),
    ],
)
def test_an_error_is_one_object_on_standard_output(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    status: int,
    reason: str,
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _ended(monkeypatch, words) == status
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert (error["status"], error["reason"]) == (status, reason)
    assert said.err.splitlines()[-1].startswith(f"ironbell: {error['message']}")


def test_the_object_that_blocks_is_part_of_the_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def waited(*_: object, **__: object) -> None:
        error = StillWaitingError("scaling is not done after 1s")
        error.details = {"why": {"kind": "Hardware", "name": "a"}}
        raise error

    monkeypatch.setattr(click.Group, "main", waited)
    assert _ended(monkeypatch, "cluster scale a --workers 2 --wait -o json") == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["why"] == {"kind": "Hardware", "name": "a"}
    assert error["reason"] == "TimedOut"


def test_lab_files_and_powers_are_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [{"power": "On"}, {}]
    monkeypatch.setattr("ironbell.cli.lab._command", lambda *_: answers.pop(0))
    for words, expected in (
        (f"lab init {tmp_path / 'lab.yaml'} -o json", {"result": "written", "file": str(tmp_path / "lab.yaml")}),
        (f"lab power --data-dir {tmp_path} a on -o json", {"result": "on", "machine": "a", "power": "on"}),
        (f"lab fault --data-dir {tmp_path} a slow -o json", {"result": "set", "machine": "a", "fault": "slow"}),
    ):
        assert _ended(monkeypatch, words) == 0
        found = json.loads(capsys.readouterr().out)
        assert found.pop("time")
        assert found == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("get hardware -o json", True),
        ("get hardware --output=json", True),
        ("osie build --format json", True),
        ("get hardware -o yaml", False),
        ("get json -o", False),
        ("", False),
    ],
)
def test_json_is_found_on_a_command_line(words: str, *, expected: bool) -> None:
    assert requests_json(words.split()) is expected
