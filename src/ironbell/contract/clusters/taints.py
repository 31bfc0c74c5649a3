"""Taints that Machines hand to their Nodes: which keys may be theirs.

Source: kubernetes-sigs/cluster-api: internal/util/taints/taints.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.cluster.names import TAINT_OUTDATED_REVISION, TAINT_UNINITIALIZED
from ironbell.contract.admission import FieldProblem, invalid

_RESERVED: Final = (TAINT_UNINITIALIZED, TAINT_OUTDATED_REVISION)
_NODE_PREFIX: Final = "node.kubernetes.io/"
_NODE_ALLOWED: Final = "node.kubernetes.io/out-of-service"
_CLOUD_PREFIX: Final = "node.cloudprovider.kubernetes.io/"
_DEPRECATED: Final = "node-role.kubernetes.io/master"
_KEY: Final = re.compile(
    r"(?:(?=.{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def taint_problems(taints: Any, path: str) -> Iterator[FieldProblem]:
    """Return the problems of the keys of `spec.taints` of a Machine or a template of one."""
    for number, taint in enumerate(taints or ()):
        key = str(taint.get("key", "")) if isinstance(taint, dict) else ""
        if problem := reserved_taint_problem(key):
            yield invalid(f"{path}[{number}].key", key, problem)
        if not _KEY.fullmatch(key):
            rule = "must be [PREFIX/]NAME: a DNS name, and up to 63 letters, digits, '-', '_' and '.'"
            yield invalid(f"{path}[{number}].key", key, rule)


def reserved_taint_problem(key: str) -> str:
    """Return the reason why a taint's key is for other components only; empty if Machines may have it."""
    if key in _RESERVED:
        return "taint key is not allowed"
    if key.startswith(_NODE_PREFIX) and key != _NODE_ALLOWED:
        return f"taint key must not have the prefix {_NODE_PREFIX}, except for {_NODE_ALLOWED}"
    if key.startswith(_CLOUD_PREFIX):
        return f"taint key must not have the prefix {_CLOUD_PREFIX}"
    if key == _DEPRECATED:
        return "taint is deprecated since 1.24 and should not be used anymore"
    return ""
