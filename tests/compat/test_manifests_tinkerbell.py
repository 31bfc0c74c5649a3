"""Upstream's example manifests of our kinds pass through the structs without loss."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ironbell.api.meta import to_builtin
from ironbell.app.registry import KINDS
from ironbell.codec import goyaml
from support.programs.upstream import manifests

BY_NAME = {(kind.api_version, kind.kind): kind for kind in KINDS}


def _objects() -> Iterator[Any]:
    for path in manifests("tinkerbell"):
        for document in goyaml.load_all(path.read_text()):
            for entry in document if isinstance(document, list) else [document]:
                if isinstance(entry, dict) and (entry.get("apiVersion"), entry.get("kind")) in BY_NAME:
                    yield pytest.param(entry, id=f"{path.stem}:{entry['metadata']['name']}")


def _without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_zeros(child) for key, child in value.items()}
        return {key: child for key, child in kept.items() if child not in ("", 0, None, [], {})}
    if isinstance(value, list):
        return [_without_zeros(child) for child in value]
    return value


OBJECTS = list(_objects())


@pytest.mark.parametrize("manifest", OBJECTS)
def test_example_survives_decoding_and_encoding(manifest: dict[str, Any]) -> None:
    kind = BY_NAME[manifest["apiVersion"], manifest["kind"]]
    again = to_builtin(kind.decode(msgspec.json.encode(manifest)))
    assert _without_zeros(again) == _without_zeros(manifest)


def test_examples_cover_hardware() -> None:
    assert sum(parameter.values[0]["kind"] == "Hardware" for parameter in OBJECTS) >= 5
