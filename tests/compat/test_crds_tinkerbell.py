"""The generated definitions accept exactly what upstream's do.

`crds_tinkerbell.facts` holds what upstream's definitions say, without their prose. It is renewed from a folder with
upstream's files by `python tests/compat/test_crds_tinkerbell.py > tests/compat/crds_tinkerbell.facts`; the folder is
`upstream` in the variable IRONBELL_UPSTREAM, or beside the repository.
"""

import os
import sys
from pathlib import Path

import pytest

from ironbell.api.crd.document import crd_document
from ironbell.api.crd.facts import crd_facts
from ironbell.api.registry import kinds_of
from ironbell.codec import goyaml

HERE = Path(__file__).resolve().parent
UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or HERE.parents[2] / "shared" / "upstream")
DEFINITIONS = UPSTREAM / "crds" / "tinkerbell" / "v1alpha1"
DIGEST = HERE / "crds_tinkerbell.facts"


def _upstream_facts() -> list[str]:
    documents = (goyaml.load(path.read_text()) for path in sorted(DEFINITIONS.glob("*.yaml")))
    return sorted(line for document in documents for line in crd_facts(document))


def _generated_facts() -> list[str]:
    kinds = kinds_of(["tinkerbell.org", "bmc.tinkerbell.org"])
    return sorted(line for kind in kinds for line in crd_facts(crd_document(kind)))


def test_generated_definitions_equal_the_digest() -> None:
    assert _generated_facts() == DIGEST.read_text().splitlines()


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_digest_equals_upstreams_definitions() -> None:
    assert DIGEST.read_text().splitlines() == _upstream_facts()


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_generated_definitions_equal_upstreams() -> None:
    assert _generated_facts() == _upstream_facts()


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _upstream_facts())
