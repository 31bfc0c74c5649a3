"""docs/reference/claims.md and the tests say the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "claims.md"
_ROW = re.compile(
    r"^\| (S\d\d) .*? \| (.*?) \| (?:yes|in part|no) \| .* "
    r"\| (?P<proof>real|in part|simulated|none) \| (?P<real>-|`\S+`) \| `(?P<test>test_\w+)` \|$"
)
_TEST = re.compile(r"((?:^@(?:.*\n)(?:^[ )\]].*\n)*)*)^def (test_s\d\d_\w+)\(", re.MULTILINE)


def rows() -> list[re.Match[str]]:
    return [row for line in PAGE.read_text().splitlines() if (row := _ROW.match(line))]


def claims() -> dict[str, bool]:
    """Each test of a claim, and whether it is expected to pass."""
    texts = [path.read_text() for path in sorted(HERE.glob("test_seed_000_*.py"))]
    return {name: "mark.xfail(" not in marks for text in texts for marks, name in _TEST.findall(text)}


def test_each_claim_has_its_row_and_its_test() -> None:
    assert [row[1] for row in rows()] == [f"S{number:02}" for number in range(1, 64)]
    assert [row["test"] for row in rows()] == list(claims())
    assert all(row["test"].startswith(f"test_{row[1].lower()}_") for row in rows())


def test_what_is_kept_is_tested() -> None:
    runs = claims()
    assert {row["test"]: row[2].startswith("yes") for row in rows()} == runs
    assert f"{sum(runs.values())} of 63 are kept" in PAGE.read_text()


def test_what_is_shown_on_machines_names_a_test_that_runs_there() -> None:
    for row in rows():
        assert (row["real"] != "-") is (row["proof"] in ("real", "in part")), row[1]
        if row["real"] != "-":
            path, _, name = row["real"].strip("`").partition("::")
            text = (HERE.parent / path).read_text()
            assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), row["real"]


def test_kinds_of_proof_are_counted_right() -> None:
    kinds = Counter(row["proof"] for row in rows())
    told = (
        f"{kinds['real']} claims are shown for real, {kinds['in part']} in part, and {kinds['simulated']} by simulation"
    )
    assert told in PAGE.read_text()
