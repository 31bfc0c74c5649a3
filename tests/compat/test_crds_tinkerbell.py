"""The generated definitions have everything that upstream's have, and what `crds_tinkerbell.added` lists.

`crds_tinkerbell.facts` holds what upstream's definitions say, without their prose. Both files are renewed from a folder
with upstream's files by `python tests/compat/test_crds_tinkerbell.py`; the folder is `upstream` in the variable
IRONBELL_UPSTREAM, or beside the repository.
"""

import os
from pathlib import Path

import pytest

from ironbell.api.crd.document import crd_document
from ironbell.api.crd.facts import crd_facts
from ironbell.app.registry import kinds_of
from ironbell.codec import goyaml

HERE = Path(__file__).resolve().parent
UPSTREAM = Path(os.environ.get("IRONBELL_UPSTREAM") or HERE.parents[2] / "shared" / "upstream")
DEFINITIONS = UPSTREAM / "crds" / "tinkerbell" / "v1alpha1"
DIGEST = HERE / "crds_tinkerbell.facts"
ADDED = HERE / "crds_tinkerbell.added"


def _upstream_facts() -> list[str]:
    documents = (goyaml.load(path.read_text()) for path in sorted(DEFINITIONS.glob("*.yaml")))
    return sorted(line for document in documents for line in crd_facts(document))


def _generated_facts() -> list[str]:
    kinds = kinds_of(["tinkerbell.org", "bmc.tinkerbell.org"])
    return sorted(line for kind in kinds for line in crd_facts(crd_document(kind)))


def _added(ours: list[str], upstream: list[str]) -> list[str]:
    return sorted(set(ours) - set(upstream))


def test_nothing_of_upstreams_definitions_is_missing_or_other() -> None:
    assert not set(DIGEST.read_text().splitlines()) - set(_generated_facts())


def test_what_is_added_is_listed_and_is_status_and_columns_alone() -> None:
    added = ADDED.read_text().splitlines()
    assert _added(_generated_facts(), DIGEST.read_text().splitlines()) == added
    assert [line for line in added if " .status." not in line and " column " not in line] == []
    assert [line for line in added if "required=" in line] == []


@pytest.mark.skipif(not DEFINITIONS.is_dir(), reason=f"no upstream definitions in {DEFINITIONS}")
def test_digest_equals_upstreams_definitions() -> None:
    assert DIGEST.read_text().splitlines() == _upstream_facts()


if __name__ == "__main__":
    DIGEST.write_text("".join(f"{line}\n" for line in _upstream_facts()))
    ADDED.write_text("".join(f"{line}\n" for line in _added(_generated_facts(), _upstream_facts())))
