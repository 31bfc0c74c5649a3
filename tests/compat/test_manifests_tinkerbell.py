"""Upstream's example manifests of our kinds pass through the structs without loss."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.api.meta import to_builtin
from ironbell.app.registry import KINDS
from ironbell.codec import goyaml

UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or Path(__file__).resolve().parents[3] / "shared" / "upstream")
MANIFESTS = UPSTREAM / "manifests" / "tinkerbell"
BY_NAME = {(kind.api_version, kind.kind): kind for kind in KINDS}


def _objects() -> Iterator[Any]:
    for path in sorted(MANIFESTS.glob("*.yaml")):
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


@pytest.mark.skipif(not OBJECTS, reason=f"no upstream manifests in {MANIFESTS}")
@pytest.mark.parametrize("manifest", OBJECTS)
def test_example_survives_decoding_and_encoding(manifest: dict[str, Any]) -> None:
    kind = BY_NAME[manifest["apiVersion"], manifest["kind"]]
    again = to_builtin(kind.decode(msgspec.json.encode(manifest)))
    assert _without_zeros(again) == _without_zeros(manifest)


@pytest.mark.skipif(not MANIFESTS.is_dir(), reason=f"no upstream manifests in {MANIFESTS}")
def test_examples_cover_hardware() -> None:
    assert sum(parameter.values[0]["kind"] == "Hardware" for parameter in OBJECTS) >= 5
