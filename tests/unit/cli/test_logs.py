"""The end of a log, from the Workflow itself."""

from __future__ import annotations

import msgspec

from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.cli.logs import kept_lines


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
