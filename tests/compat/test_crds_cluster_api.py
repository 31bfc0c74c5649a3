"""The generated definitions of Cluster API accept exactly what upstream's do, in every version.

Labels are left out: upstream adds them when it releases. `crds_cluster_api.facts` holds a checksum for each
definition's facts; what differs is seen where upstream's files are: in the folder `upstream` of the variable
IRONBELL_UPSTREAM, or beside the repository. With them it is renewed by
`python tests/compat/test_crds_cluster_api.py > tests/compat/crds_cluster_api.facts`.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.crd.document import crd_document
from ironbell.api.crd.facts import crd_facts
from ironbell.app.registry import KINDS
from ironbell.codec import goyaml

HERE = Path(__file__).resolve().parent
UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or HERE.parents[2] / "shared" / "upstream")
DEFINITIONS = UPSTREAM / "crds" / "cluster-api"
DIGEST = HERE / "crds_cluster_api.facts"
OURS = [kind for kind in KINDS if kind.group.endswith("cluster.x-k8s.io") and kind.older_versions]


def _facts(document: Mapping[str, Any]) -> list[str]:
    return [line for line in crd_facts(document) if line.split(" ", 2)[1] != "labels"]


def _ours() -> list[dict[str, Any]]:
    return [crd_document(kind) for kind in OURS]


def _upstream() -> list[dict[str, Any]]:
    return [goyaml.load(path.read_text()) for path in sorted(DEFINITIONS.glob("*.yaml"))]


def _digest(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    sums = (
        (document["metadata"]["name"], hashlib.sha256("\n".join(_facts(document)).encode()).hexdigest())
        for document in documents
    )
    return [f"{name} {checksum}" for name, checksum in sorted(sums)]


def test_generated_definitions_equal_the_digest() -> None:
    assert _digest(_ours()) == DIGEST.read_text().splitlines()


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_digest_equals_upstreams_definitions() -> None:
    assert DIGEST.read_text().splitlines() == _digest(_upstream())


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_generated_definitions_equal_upstreams() -> None:
    ours = sorted(line for document in _ours() for line in _facts(document))
    assert ours == sorted(line for document in _upstream() for line in _facts(document))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _digest(_upstream()))
