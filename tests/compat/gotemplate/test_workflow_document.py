"""Rendered texts are read into workflow documents as yaml.v3 decodes them into upstream's types."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from ironbell.contract.servers.image_reference import image_problem
from ironbell.contract.servers.workflow_document import DocumentError, WorkflowDocument, parse_document

_SCALARS = [
    "a", "yes", "010", "1.0", "true", "~", "", "'x'", '"1"', "0x10", "1e3", "12:30", "2001-01-01", "[a]", "{a: b}",
    "5", "-1", "0", "null", "1_000", "'5'", "!!str 5", "9223372036854775808", "|\n            x\n", "é",
    "*anchor", "&anchor x",
]  # fmt: skip


def _document(source: random.Random) -> str:
    def scalar() -> str:
        return source.choice(_SCALARS)

    lines = ["version: 0.1", f"name: {source.choice(['n', 'n', scalar()])}"]
    if source.random() < 0.5:
        lines.append(f"global_timeout: {scalar()}")
    if source.random() < 0.1:
        lines.append(source.choice(["unknown: 1", "name: twice", "<<: {id: x}", "tasks: 1"]))
    lines.append("tasks:")
    for number in range(source.randint(1, 2)):
        lines += [f"  - name: t{number}", f"    worker: {scalar()}", "    actions:"]
        for index in range(source.randint(0, 2)):
            lines += [f"      - name: a{index}", "        image: alpine"]
            lines += [f"        {key}: {scalar()}" for key in source.sample(["timeout", "pid", "on-timeout"], 1)]
            kind = source.randint(0, 4)
            if kind == 0:
                lines.append(f"        command: [{scalar()!s}, b]".replace("\n            x\n", " x"))
            elif kind == 1:
                lines += [
                    "        environment:",
                    f"          K: {scalar()}",
                    f"          {source.choice(['1', 'yes', 'L'])}: v",
                ]
            elif kind == 2:
                lines += ["        namespaces:", f"          network: {scalar()}"]
            elif kind == 3:
                lines += ["        volumes:", f"          - {scalar()}"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _as_upstream(document: WorkflowDocument) -> dict[str, Any]:
    """Our document in the shape that the oracle prints; keys that we do not keep are left out."""
    return {
        "name": document.name,
        "global_timeout": document.global_timeout_s,
        "tasks": [
            {
                "name": task.name,
                "worker": task.agent_id,
                "environment": task.environment or {},
                "actions": [
                    {
                        "name": action.name,
                        "timeout": action.timeout,
                        "pid": action.pid,
                        "command": list(action.command),
                        "volumes": list(action.volumes),
                        "environment": action.environment or {},
                        "network": action.namespaces.network if action.namespaces is not None else "",
                    }
                    for action in task.actions
                ],
            }
            for task in document.tasks
        ],
    }


def _ours(text: str) -> dict[str, Any] | None:
    try:
        return _as_upstream(parse_document(text))
    except DocumentError:
        return None


def _upstream(printed: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": printed["Name"],
        "global_timeout": printed["GlobalTimeout"],
        "tasks": [
            {
                "name": task["Name"],
                "worker": task["Worker"],
                "environment": task["Environment"] or {},
                "actions": [
                    {
                        "name": action["Name"],
                        "timeout": action["Timeout"],
                        "pid": action["Pid"],
                        "command": action["Command"] or [],
                        "volumes": action["Volumes"] or [],
                        "environment": action["Environment"] or {},
                        "network": action["Namespaces"]["Network"],
                    }
                    for action in task["Actions"] or []
                ],
            }
            for task in printed["Tasks"] or []
        ],
    }


def test_documents_are_read_as_upstream_reads_them(oracle: Callable[..., list[Any]]) -> None:
    source = random.Random(11)
    texts = [_document(source) for _ in range(1500)]
    answers = oracle([{"mode": "document", "text": text} for text in texts])
    accepted = 0
    for text, answer in zip(texts, answers, strict=True):
        upstream = None if answer.output is None else _upstream(msgspec.json.decode(answer.output))
        ours = _ours(text)
        if ours is not None or upstream is None:
            accepted += ours is not None
            assert ours == upstream, f"{text}\nGo says: {answer.error}"
        else:
            # What upstream's decoder accepts, its validator may still refuse: names and workers.
            assert not upstream["name"] or not all(task["worker"] for task in upstream["tasks"]), text
    assert accepted > 200


def test_image_names_are_judged_as_upstream_judges_them(oracle: Callable[..., list[Any]]) -> None:
    source = random.Random(12)
    parts = [
        "a", "b-c", "b--c", "b_c", "b__c", "b___c", "A", ".", "..", "/", ":", ":tag", ":8080", "@sha256:" + "0" * 64,
        "localhost", "ghcr.io",
        "quay.io/x/y", "Docker.io", "-", "1.2.3.4", "[::1]", "é", "@sha256:00", ":Tag_1.x", "f" * 64,
        "library",
        "docker.io", "index.docker.io", "@", " ", "x" * 130, "latest",
        "@sha512:" + "1" * 128, "@md5:" + "0" * 32, "@sha256:" + "A" * 64,
    ]  # fmt: skip
    names = ["".join(source.choice(parts) for _ in range(source.randint(0, 5))) for _ in range(4000)]
    answers = oracle([{"mode": "image", "text": name} for name in names])
    for name, answer in zip(names, answers, strict=True):
        assert (image_problem(name) == "") == (answer.output is not None), f"{name!r}\nGo says: {answer.error}"
