"""`tools/surface.py` on small checkouts: it finds a difference of each part, and none where only a run differs."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from support.site.smallcheckout import ANSWERS, Answers, plant, small_checkout

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "tools"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLANTED: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "crds": (("crds", "b.example.com"), "---\nspec:\n  group: b.example.com\n  scope: Cluster\n", "+  scope: Cluster"),
    "definitions": (("api", _DEFINITIONS, "items"), [{"metadata": {"name": "x"}}], "+++ after/definitions/plain"),
    "discovery": (("api", "/apis/tinkerbell.org/v1alpha1"), {"resources": [{"name": "racks"}]}, '+   "name": "racks"'),
    "help": (("completion",), "complete ironbell --all\n", "+complete ironbell --all"),
    "install": (("install",), "---\nkind: Namespace\n---\nkind: Lease\n", "+kind: Lease"),
    "metrics": (("metrics", "boot"), "# TYPE dhcp counter\n# HELP dhcp Messages.\n", "+dhcp type counter"),
    "names": (("source",), 'HOLD = "ironbell.dev/held"\n', "+ironbell.dev/held"),
    "options": (
        ("help", "up"),
        "Usage: ironbell up [OPTIONS]\n\nOptions:\n  --force     Anyway.\n  -h, --help  Show this message and exit.\n",
        "+ironbell up: --force",
    ),
    "reference": (("docs", "ports.md"), "# Ports\n", "+# Ports"),
    "rights": (("rules",), [{"verbs": ["get", "patch"], "resources": ["hardware"]}], '+    "patch"'),
    "roles": (("api", _ROLES, "items"), [{"metadata": {"name": "ironbell:boot"}, "rules": []}], '+ "rules": []'),
    "schemas": (("api", "/openapi/v3/api/v1"), {"openapi": "3.1.0"}, '+ "openapi": "3.1.0"'),
    "webhooks": (("api", _WEBHOOKS, "items"), [], "--- before/webhooks/plain/ValidatingWebhookConfiguration"),
}
"""By part: what is planted where, and a line that shows it."""


@pytest.fixture
def surface(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """The program's `main`."""
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("surface_program", TOOLS / "surface.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    # small sites create everything before they are ready
    monkeypatch.setattr("surface.site.QUIET_S", 0.0)
    monkeypatch.setattr("surface.manifests.ALIASES", ())
    yield lambda *words: program.main([*map(str, words)])
    for name in [name for name in sys.modules if name.partition(".")[0] == "surface"]:
        del sys.modules[name]


def table(text: str) -> dict[str, tuple[int, int, int]]:
    """The table at the end: items, differences and those in order only, by part."""
    return {name: counts[:3] for name, counts in whole_table(text).items()}


def whole_table(text: str) -> dict[str, tuple[int, int, int, int]]:
    """The table at the end, with the differences in prose only as well."""
    rows = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    return {name: (int(items), int(all_), int(order), int(prose)) for name, items, all_, order, prose in rows}


def test_a_difference_of_each_part_is_found(
    surface: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Answers = deepcopy(ANSWERS)
    for path, value, _ in PLANTED.values():
        plant(answers, *path, value=value)
    before, after = small_checkout(tmp_path / "a"), small_checkout(tmp_path / "b", answers)
    assert surface("compare", before, after) == 1
    text = capsys.readouterr().out
    counts = table(text)
    assert {part for part, (_, differences, _) in counts.items() if differences} == {*PLANTED, "all"}
    lines = text.splitlines()
    shown = {part: line for part, (_, _, line) in PLANTED.items()}
    assert {part for part, line in shown.items() if not any(found.startswith(line) for found in lines)} == set()


def test_checkouts_that_differ_only_by_their_runs_are_equal(
    surface: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = small_checkout(tmp_path / "a"), small_checkout(tmp_path / "b")
    assert surface("compare", before, after, "--keep", tmp_path / "kept") == 0
    text = capsys.readouterr().out
    assert text.startswith("part ")
    assert {differences for _, differences, _ in table(text).values()} == {0}
    assert {path.name for path in (tmp_path / "kept" / "before").iterdir()} >= {*PLANTED}


@pytest.mark.parametrize("part", ["commands", "crds", "reference"])
def test_one_part_can_be_compared_alone(
    surface: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    before, after = small_checkout(tmp_path / "a"), small_checkout(tmp_path / "b")
    assert surface("compare", before, after, "--parts", part) == 0
    assert table(capsys.readouterr().out)["all"][0] > 0


def test_a_folder_that_is_no_checkout_is_named(
    surface: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert surface("compare", tmp_path, tmp_path) == 2
    assert capsys.readouterr().err == f"surface: {tmp_path} is not a checkout of Ironbell: it has no src/ironbell\n"


def test_a_change_of_order_is_counted_as_such(surface: Callable[..., int], tmp_path: Path) -> None:
    from surface.comparison import compare

    for name, text in (("before", '[\n "a",\n "b"\n]\n'), ("after", '[\n "b",\n "a"\n]\n')):
        (tmp_path / name / "roles").mkdir(parents=True)
        (tmp_path / name / "roles" / "x.json").write_text(text)
    comparison = compare(tmp_path / "before", tmp_path / "after")
    assert comparison.differs
    assert table(comparison.text)["roles"] == (1, 1, 1)


def test_a_missing_end_of_line_is_a_difference(surface: Callable[..., int], tmp_path: Path) -> None:
    from surface.comparison import compare

    for name, text in (("before", "a\n"), ("after", "a")):
        (tmp_path / name / "crds").mkdir(parents=True)
        (tmp_path / name / "crds" / "x.yaml").write_text(text)
    assert compare(tmp_path / "before", tmp_path / "after").differs


def test_the_same_change_of_several_files_is_shown_once(surface: Callable[..., int], tmp_path: Path) -> None:
    from surface.comparison import compare

    for name, text in (("before", "a\nb\n"), ("after", "a\nc\n")):
        (tmp_path / name / "crds").mkdir(parents=True)
        for file in ("x.yaml", "y.yaml"):
            (tmp_path / name / "crds" / file).write_text(text)
    text = compare(tmp_path / "before", tmp_path / "after").text
    assert text.count("+c\n") == 1
    assert "+++ after/crds/y.yaml\n@@ -1,2 +1,2 @@ the same change as in crds/x.yaml\n" in text


def test_labels_of_samples_that_are_not_the_documented_ones_are_shown(surface: Callable[..., int]) -> None:
    from surface.exposition import documented, families, lines

    page = documented("| `calls_total` | counter | `code`, `verb` | Calls. |\n")
    text = '# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{code="a\\"b{c=\\"",host="h"} 1\n'
    assert list(lines(families(text), page)) == [
        "calls_total type counter",
        "calls_total help Calls.",
        "calls_total labels code,verb",
        "calls_total has samples with other labels code,host",
    ]


def test_options_are_read_from_help_whose_lines_are_wrapped(surface: Callable[..., int]) -> None:
    from surface.commands import named, subcommands

    text = (
        "Usage: ironbell x [OPTIONS]\n                  NAME...\n\n  About x.\n\nOptions:\n"
        "  --simulate-speed [instant|real]\n                                  How long things take.\n"
        "  -n, --name TEXT                 A name, such as --other.\n\nCommands:\n  one  About one\n       -two.\n"
    )
    assert list(named("ironbell x", text)) == [
        "ironbell x: ironbell x [OPTIONS] NAME...",
        "ironbell x: --simulate-speed [instant|real]",
        "ironbell x: -n, --name TEXT",
    ]
    assert subcommands(text) == ["one"]


@pytest.mark.parametrize(
    ("name", "old", "new", "prose"),
    [
        ("crds/x.yaml", "a:\n  description: Old.\n  type: b\n", "a:\n  description: New\n    words.\n  type: b\n", 1),
        ("crds/x.yaml", "a:\n  description: Old.\n  type: b\n", "a:\n  description: New.\n  type: c\n", 0),
        ("definitions/x.json", '{"a": 1, "description": "Old."}\n', '{"a": 1, "description": "New."}\n', 1),
        ("definitions/x.json", '{"description": {"type": "a"}}\n', '{"description": {"type": "b"}}\n', 0),
        ("install/x.yaml", "status 1\nironbell: 'a' is no b\n", "status 1\nironbell: 'a' is not a b\n", 1),
        ("install/x.yaml", "status 1\nironbell: 'a' is no b\n", "status 2\nironbell: 'a' is no b\n", 0),
        ("install/x.yaml", "status 1\nironbell: 'a' is no b\n", "status 0\n---\nkind: Lease\n", 0),
        ("help/x.txt", "Make it.\n", "Create it.\n", 1),
        ("metrics/x.txt", "a help Old.\nb type gauge\n", "a help New.\nb type gauge\n", 2),
        ("metrics/x.txt", "a help Old.\nb type gauge\n", "a help New.\nb type counter\n", 2),
        ("metrics/x.txt", "a help Old.\n", "b help Old.\n", 0),
        ("names/x.txt", "ironbell.dev/a\n", "ironbell.dev/b\n", 0),
    ],
)
def test_differences_in_prose_are_counted_as_such(
    surface: Callable[..., int], tmp_path: Path, name: str, old: str, new: str, prose: int
) -> None:
    from surface.comparison import compare

    for side, text in (("before", old), ("after", new)):
        path = tmp_path / side / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    comparison = compare(tmp_path / "before", tmp_path / "after")
    assert comparison.differs
    assert whole_table(comparison.text)[name.partition("/")[0]][3] == prose
