"""Admission policies in tests: put into force for a namespace, and waited for until they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.api.kubeapi import Answer, KubeApi
from support.waiting import eventually

Bind = Callable[..., str]
"""Puts a policy of these validations or mutations into force, and gives its name; `bound` is for its binding."""
Document = Callable[..., dict[str, Any]]


@contextmanager
def binding_policies(
    api: KubeApi, namespace: str, *, policies: str, bindings: str, policy: Document, binding: Document
) -> Iterator[Bind]:
    """Puts policies into force in a namespace, until the block ends."""
    made: list[str] = []

    def put(*parts: dict[str, Any], bound: dict[str, Any] | None = None, **spec: Any) -> str:
        name = f"{namespace}-{len(made)}.example.org"
        made.append(name)
        api.made(policies, policy(name, *parts, **spec))
        api.made(bindings, binding(name, namespace, **(bound or {})))
        return name

    yield put
    for name in made:
        api.delete(f"{bindings}/{name}")
        api.delete(f"{policies}/{name}")


def denied(api: KubeApi, path: str, value: dict[str, Any]) -> Answer:
    """The refusal of a write, as soon as the server has taken the policy in."""

    def asked() -> Answer | None:
        answer = api.post(path, value, dryRun="All")
        return answer if answer.status != 201 else None

    return eventually(asked)
