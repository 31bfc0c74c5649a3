"""What `ironbell logs` requests and prints, and the end of a log from the Workflow itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from ironbell.api.client import NotFound, Page
from ironbell.api.kind import Collection
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.cli.main import cli
from ironbell.operations.logs import kept_lines
from ironbell.operations.why.world import World, ref_of


def workflow() -> Workflow:
    actions = [{"id": f"a{number}", "name": name} for number, name in enumerate(("wipe", "write", "boot"))]
    annotations = {
        "ironbell.dev/log.a0": '{"lines":["one","two"],"count":2}',
        "ironbell.dev/log.a1": "nonsense",
        "ironbell.dev/log.a2": '{"lines":["three"]}',
    }
    body = {
        "metadata": {"name": "wf", "namespace": "ns", "annotations": annotations},
        "status": {"tasks": [{"name": "t", "actions": actions}]},
    }
    return WORKFLOW.decode(msgspec.json.encode(body))


def test_lines_are_those_of_each_action_that_has_some() -> None:
    assert kept_lines(workflow()) == ["wipe | one", "wipe | two", "boot | three"]


def test_one_action_is_found_by_its_name_or_id() -> None:
    assert kept_lines(workflow(), action="boot") == kept_lines(workflow(), action="a2") == ["boot | three"]
    assert kept_lines(workflow(), action="nothing") == []


class FakeApi:
    """An API with one Workflow and the log of it."""

    def __init__(self, workflow: dict[str, Any] | None, log: list[bytes] | None) -> None:
        self.workflow, self.log = workflow, log
        self.query: dict[str, str] = {}

    async def stream(self, path: str, *, query: dict[str, str]) -> AsyncIterator[bytes]:
        self.query = query
        if self.log is None:
            raise NotFound("404")
        for chunk in self.log:
            yield chunk

    async def get(self, where: Collection, *_: object) -> bytes:
        if self.workflow is None and where == WORKFLOW.collection:
            raise NotFound("404")
        return msgspec.json.encode(self.workflow)

    async def list(self, *_: object) -> Page:
        return Page([], "1")


def printed(
    monkeypatch: pytest.MonkeyPatch, log: list[bytes] | None, *options: str, state: str = "STATE_PENDING", **more: Any
) -> tuple[dict[str, str], str, str]:
    """The query that the API got, standard output, and standard error."""
    body = {"metadata": {"name": "wf", "namespace": "default"}, "status": {"state": state}, **more}
    api = FakeApi(body, log)

    @asynccontextmanager
    async def connected(*_: object) -> AsyncIterator[FakeApi]:
        yield api

    async def read_world(_api: FakeApi, root: dict[str, Any]) -> World:
        world = World()
        world.put(ref_of(root), root)
        return world

    monkeypatch.setattr("ironbell.cli.session.connected", connected)
    monkeypatch.setattr("ironbell.operations.logs.read_world", read_world)
    done = CliRunner().invoke(cli, ["logs", "wf", *options])
    assert done.exit_code == 0, done.exception
    return api.query, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("option", "expected"), [([], "true"), (["--timestamps"], "true"), (["--no-timestamps"], None)]
)
def test_times_are_shown_unless_they_are_turned_off(
    monkeypatch: pytest.MonkeyPatch, option: list[str], expected: str | None
) -> None:
    query, said, _ = printed(monkeypatch, [b"2026-11-24T00:00:00Z wipe | one\n"], *option)
    assert query.get("timestamps") == expected
    assert said == "2026-11-24T00:00:00Z wipe | one\n"


def test_without_logs_it_says_why_there_are_none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said, problem = printed(monkeypatch, [])
    assert said == ""
    assert problem.startswith("Workflow default/wf has no logs yet. Workflow default/wf: ")
    assert len(problem.splitlines()) == 1


def test_a_finished_workflow_without_logs_printed_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said, problem = printed(monkeypatch, [], state="SUCCESS")
    assert said == ""
    assert problem == "The actions of workflow default/wf have printed nothing, or their logs were removed.\n"


def test_an_api_without_logs_has_what_the_workflow_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = {"name": "wf", "namespace": "default", "annotations": {"ironbell.dev/log.a": '{"lines":["one\\u001b[2J"]}'}}
    status = {"tasks": [{"name": "t", "actions": [{"id": "a", "name": "wipe"}]}]}
    _, said, problem = printed(monkeypatch, None, metadata=meta, status=status)
    assert said == "wipe | one\\x1b[2J\n"
    assert "without times" in problem


@pytest.mark.parametrize(
    ("exists", "words", "message"),
    [
        (False, ["wf"], 'Workflow "wf" does not exist in namespace "default". `ironbell get workflows -A` lists all.'),
        (True, ["wf", "-o", "json"], "no logs of workflow default/wf: 404."),
        (True, ["hardware", "s1"], "only workflows have logs, not hardware. `ironbell get workflows -A` lists them."),
    ],
)
def test_where_there_is_no_log_the_message_names_the_cause(
    monkeypatch: pytest.MonkeyPatch, words: list[str], message: str, *, exists: bool
) -> None:
    api = FakeApi({"metadata": {"name": "wf", "namespace": "default"}, "status": {}} if exists else None, None)

    @asynccontextmanager
    async def connected(*_: object) -> AsyncIterator[FakeApi]:
        yield api

    monkeypatch.setattr("ironbell.cli.session.connected", connected)
    done = CliRunner().invoke(cli, ["logs", *words])
    assert str(done.exception) == message
