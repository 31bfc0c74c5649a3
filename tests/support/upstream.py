"""Upstream's definitions and manifests: data that lies beside the project, or where `IRONBELL_UPSTREAM` says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or Path(__file__).resolve().parents[3] / "shared" / "upstream")
needs_upstream = pytest.mark.skipif(not UPSTREAM.is_dir(), reason=f"upstream's data is not at {UPSTREAM}")


def files(folder: str) -> list[Path]:
    """All YAML files under a folder, by name; none where the data is not there."""
    return sorted((UPSTREAM / folder).rglob("*.yaml"))
