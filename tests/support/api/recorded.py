"""Behaviours of kube-apiserver as data: requests, and what it answered.

Each file in `tests/conformance/recorded` holds cases that were asked of a real kube-apiserver 1.36.3. The suite asks
them again of both servers, so that a record can only be right. `NS` and `GROUP` stand for the test's namespace and its
API group.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.api.kubeapi import JSON, Answer, KubeApi

_FOLDER = Path(__file__).parents[2] / "conformance" / "recorded"
_NOT_RUN = re.compile(r"this API (runs|signs) no ")
_CHANGING = {"managedFields", "uid", "resourceVersion"}
_TIMES = {"creationTimestamp", "lastTransitionTime", "lastUpdateTime"}
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")


@dataclass(frozen=True)
class Case:
    """One request with its answer."""

    name: str
    method: str
    path: str
    content: bytes | None
    content_type: str
    params: dict[str, str]
    expect: dict[str, Any]


def read(name: str) -> Any:
    """The content of a file, as data."""
    return json.loads((_FOLDER / f"{name}.json").read_text())


def cases(name: str) -> list[Case]:
    """The cases of a file."""
    return [_case(item) for item in read(name)]


def each(name: str) -> pytest.MarkDecorator:
    """One test for each case of a file."""
    found = cases(name)
    return pytest.mark.parametrize("case", found, ids=[case.name.replace(" ", "-") for case in found])


def _case(item: dict[str, Any]) -> Case:
    body = item.get("text")
    content = body.encode() if body is not None else json.dumps(item["body"]).encode() if "body" in item else None
    return Case(
        item["id"], item["method"], item["path"], content, item.get("type", JSON), item.get("params", {}),
        item["expect"],
    )  # fmt: skip


def ask(api: KubeApi, case: Case, *, namespace: str = "", group: str = "") -> Answer:
    """Ask a case, and check the answer."""

    def placed(text: str) -> str:
        return re.sub(r"\bGROUP\b", group, re.sub(r"\bNS\b", namespace, text))

    content = placed(case.content.decode()).encode() if case.content is not None else None
    answer = api.call(case.method, placed(case.path), content, content_type=case.content_type, **case.params)
    expected = json.loads(placed(json.dumps(case.expect)))
    assert seen(answer, expected) == expected, case.name
    return answer


def seen(answer: Answer, expected: dict[str, Any]) -> dict[str, Any]:
    """What of an answer a case speaks of."""
    body = answer.json
    failed = answer.status >= 300
    found: dict[str, Any] = {"status": answer.status}
    if failed:
        found |= {"reason": answer.reason, "message": answer.message}
        found["causes"] = [[cause.get("reason"), cause.get("field")] for cause in answer.causes]
    found["warnings"] = [text for text in answer.warnings if not _NOT_RUN.match(text)]
    if "object" in expected:
        found["object"] = {key: usual(body[key]) for key in expected["object"]}
    return {key: value for key, value in found.items() if value or key == "object"}


def usual(value: Any) -> Any:
    """A value without what differs from one request to the next."""
    if isinstance(value, dict):
        return {
            key: "T" if key in _TIMES and part else usual(part) for key, part in value.items() if key not in _CHANGING
        }
    if isinstance(value, list):
        return [usual(part) for part in value]
    return _UID.sub("UID", value) if isinstance(value, str) else value
