"""The generated definitions of Cluster API accept exactly what upstream's do, in every version.

Labels are left out: upstream adds them when it releases.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ironbell.api.crd.document import crd_document
from ironbell.app.registry import KINDS
from support.api.crdfacts import crd_facts
from support.programs.upstream import definitions

OURS = [kind for kind in KINDS if kind.group.endswith("cluster.x-k8s.io") and kind.older_versions]


def _facts(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(line for document in documents for line in crd_facts(document) if line.split(" ", 2)[1] != "labels")


def test_generated_definitions_equal_upstreams() -> None:
    upstream = definitions("cluster-api")
    assert len(upstream) == len(OURS)
    assert _facts(crd_document(kind) for kind in OURS) == _facts(upstream)
