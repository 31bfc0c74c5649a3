"""Versions of a kind that are served but not stored: schemas as data, without Python types.

Each group keeps them in `older_versions.json` beside its modules: what upstream's definitions say, without prose.
Schemas that occur more than once are kept once, under `shared`; `{"$shared": 3}` stands for the fourth of them.
`tools/older_versions.py` writes the files.

Source: kubernetes-sigs/cluster-api: core/config/crd, bootstrap/kubeadm/config/crd, controlplane/kubeadm/config/crd.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from ironbell.api.kind import Kind

REFERENCE = "$shared"


class _Data(msgspec.Struct, frozen=True):
    shared: list[Any]
    kinds: dict[str, list[dict[str, Any]]]


def older_versions(kind: Kind[Any]) -> list[dict[str, Any]]:
    """Entries of `spec.versions` of the kind's definition, oldest first; the caller may change them."""
    if not kind.older_versions:
        return []
    data = _data(kind.older_versions)
    return [_expanded(version, data.shared) for version in data.kinds[kind.plural]]


@cache
def _data(package: str) -> _Data:
    return msgspec.json.decode((files(package) / "older_versions.json").read_bytes(), type=_Data)


def _expanded(value: Any, shared: list[Any]) -> Any:
    """A copy with every reference replaced by what it stands for."""
    if isinstance(value, dict):
        if REFERENCE in value:
            return _expanded(shared[value[REFERENCE]], shared)
        return {key: _expanded(entry, shared) for key, entry in value.items()}
    if isinstance(value, list):
        return [_expanded(entry, shared) for entry in value]
    return value
