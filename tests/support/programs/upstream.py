"""Upstream's definitions and manifests: as facts in tests/facts, and as their projects publish them.

The originals lie beside the repository in ../shared/upstream, or where `IRONBELL_UPSTREAM` says. Only what has code is
tested from there; tests/facts has everything else, and texts of ours at the places of code.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.skips import UPSTREAMS_TEXT

FACTS = Path(__file__).parents[2] / "facts"
ORIGINALS = Path(os.environ.get("IRONBELL_UPSTREAM") or Path(__file__).resolve().parents[4] / "shared" / "upstream")
needs_originals = pytest.mark.skipif(
    not ORIGINALS.is_dir(), reason=f"{UPSTREAMS_TEXT}: the originals are not at {ORIGINALS}"
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def definition_files(system: str) -> dict[str, list[Any]]:
    """The documents of each file with a system's definitions; not to be changed by who gets them."""
    found: dict[str, list[Any]] = yaml.load((FACTS / "crds" / f"{system}.yaml").read_text(), _LOADER)  # noqa: S506 - a safe loader
    return found


def definitions(system: str, folder: str = "") -> list[Any]:
    """A system's definitions, or those of one of its folders, as `tinkerbell` and `v1alpha1/`."""
    files = definition_files(system).items()
    return [document for name, documents in files if name.startswith(folder) for document in documents]


def systems() -> list[str]:
    """The systems that have definitions."""
    return sorted(path.stem for path in (FACTS / "crds").glob("*.yaml"))


def manifest(name: str) -> Path:
    """A manifest's facts, as `capt/cluster-template.yaml`."""
    return FACTS / "manifests" / name


def manifests(system: str = "*") -> list[Path]:
    """The facts of all manifests, or of a system's."""
    return sorted((FACTS / "manifests").glob(f"{system}/*.yaml"))


@cache
def names_with_code() -> tuple[str, ...]:
    """The manifests that have code, whose originals are tested as well."""
    lines = (line.split(" ", 2) for line in (FACTS / "originals.txt").read_text().splitlines())
    return tuple(name.removeprefix("manifests/") for _, kind, name in lines if kind == "code")


def original(name: str) -> Path:
    """A manifest as it is published.

    Raises:
        AssertionError: it is another version than the facts are from.
    """
    path = ORIGINALS / "manifests" / name
    line = f"{hashlib.sha256(path.read_bytes()).hexdigest()} code manifests/{name}"
    listed = (FACTS / "originals.txt").read_text().splitlines()
    assert line in listed, f"{path} is not what tests/facts is from: run tools/upstream_facts.py {ORIGINALS}"
    return path


def published(name: str) -> Path:
    """A manifest with code, for a test that takes too long to run on both: the original if it is there."""
    assert name in names_with_code()
    return original(name) if ORIGINALS.is_dir() else manifest(name)


both = pytest.mark.parametrize(
    "source", [pytest.param(manifest, id="facts"), pytest.param(original, id="original", marks=needs_originals)]
)
"""Runs a test on the facts, whose code is ours, and on the original: `source(name)` is the path of a manifest."""
