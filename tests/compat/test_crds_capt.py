"""The generated definitions of CAPT's kinds have everything that upstream's have, and what `crds_capt.added` lists.

The list is renewed by `PYTHONPATH=tests python tests/compat/test_crds_capt.py`. Labels are left out: upstream adds them
when it releases.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ironbell.api.capt import KINDS
from ironbell.api.crd.document import crd_document
from support.api.crdfacts import crd_facts
from support.programs.upstream import definitions

ADDED = Path(__file__).with_name("crds_capt.added")
OUR_OWN = {"TinkerbellClusterTemplate", "TinkerbellRemediation", "TinkerbellRemediationTemplate"}


def _facts(documents: Iterable[Mapping[str, Any]]) -> set[str]:
    return {line for document in documents for line in crd_facts(document) if line.split(" ", 2)[1] != "labels"}


def _upstream() -> set[str]:
    return _facts(definitions("capt"))


def _ours() -> set[str]:
    return _facts(crd_document(kind) for kind in KINDS if kind.kind not in OUR_OWN)


def test_nothing_of_upstreams_definitions_is_missing_or_other() -> None:
    # a template gets a status, so that the autoscaler can begin at zero
    template = "tinkerbellmachinetemplates.infrastructure.cluster.x-k8s.io/v1beta1 subresources {}"
    assert _upstream() - _ours() == {template}


def test_what_is_added_is_listed() -> None:
    assert sorted(_ours() - _upstream()) == ADDED.read_text().splitlines()


def test_what_is_added_is_optional() -> None:
    assert not [line for line in ADDED.read_text().splitlines() if " .spec: " in line or "spec.template: " in line]


if __name__ == "__main__":
    ADDED.write_text("".join(f"{line}\n" for line in sorted(_ours() - _upstream())))
