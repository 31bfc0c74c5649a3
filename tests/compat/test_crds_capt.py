"""The generated definitions of CAPT's kinds have everything that upstream's have, and what `crds_capt.added` lists.

`crds_capt.facts` holds what upstream's definitions say, without their prose. Both files are renewed from a folder with
upstream's by `python tests/compat/test_crds_capt.py`; the folder is `upstream` in the variable IRONBELL_UPSTREAM, or
beside the repository. Labels are left out: upstream adds them when it releases.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.capt import KINDS
from ironbell.api.crd.document import crd_document
from ironbell.api.crd.facts import crd_facts
from ironbell.codec import goyaml

HERE = Path(__file__).resolve().parent
UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or HERE.parents[2] / "shared" / "upstream")
DEFINITIONS = UPSTREAM / "crds" / "capt"
DIGEST = HERE / "crds_capt.facts"
ADDED = HERE / "crds_capt.added"
OUR_OWN = {"TinkerbellClusterTemplate", "TinkerbellRemediation", "TinkerbellRemediationTemplate"}


def _facts(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(line for document in documents for line in crd_facts(document) if line.split(" ", 2)[1] != "labels")


def _upstream() -> list[str]:
    return _facts(goyaml.load(path.read_text()) for path in sorted(DEFINITIONS.glob("*.yaml")))


def _ours() -> list[str]:
    return _facts(crd_document(kind) for kind in KINDS if kind.kind not in OUR_OWN)


def _added(ours: list[str], upstream: list[str]) -> list[str]:
    return sorted(set(ours) - set(upstream))


def _changed(ours: list[str], upstream: list[str]) -> list[str]:
    return sorted(set(upstream) - set(ours))


def test_nothing_of_upstreams_definitions_is_missing_or_other() -> None:
    # a template gets a status, so that the autoscaler can begin at zero
    template = "tinkerbellmachinetemplates.infrastructure.cluster.x-k8s.io/v1beta1 subresources {}"
    assert _changed(_ours(), DIGEST.read_text().splitlines()) == [template]


def test_what_is_added_is_listed() -> None:
    assert _added(_ours(), DIGEST.read_text().splitlines()) == ADDED.read_text().splitlines()


def test_what_is_added_is_optional() -> None:
    assert not [line for line in ADDED.read_text().splitlines() if " .spec: " in line or "spec.template: " in line]


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_digest_equals_upstreams_definitions() -> None:
    assert DIGEST.read_text().splitlines() == _upstream()


if __name__ == "__main__":
    DIGEST.write_text("".join(f"{line}\n" for line in _upstream()))
    ADDED.write_text("".join(f"{line}\n" for line in _added(_ours(), _upstream())))
