"""The generated definitions have everything that upstream's have, and what `crds_tinkerbell.added` lists.

The list is renewed by `PYTHONPATH=tests python tests/compat/test_crds_tinkerbell.py`.
"""

from pathlib import Path

from ironbell.api.crd.document import crd_document
from ironbell.app.registry import kinds_of
from support.api.crdfacts import crd_facts
from support.programs.upstream import definitions

ADDED = Path(__file__).with_name("crds_tinkerbell.added")


def _upstream() -> set[str]:
    return {line for document in definitions("tinkerbell", "v1alpha1/") for line in crd_facts(document)}


def _ours() -> set[str]:
    return {
        line for kind in kinds_of(["tinkerbell.org", "bmc.tinkerbell.org"]) for line in crd_facts(crd_document(kind))
    }


def test_nothing_of_upstreams_definitions_is_missing_or_other() -> None:
    assert len(_upstream()) > 500
    assert not _upstream() - _ours()


def test_what_is_added_is_listed_and_is_status_and_columns_alone() -> None:
    added = ADDED.read_text().splitlines()
    assert sorted(_ours() - _upstream()) == added
    assert [line for line in added if " .status." not in line and " column " not in line] == []
    assert [line for line in added if "required=" in line] == []


if __name__ == "__main__":
    ADDED.write_text("".join(f"{line}\n" for line in sorted(_ours() - _upstream())))
