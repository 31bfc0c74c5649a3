"""`tools/words.py` on small files: what each rule finds, what it leaves alone, and where."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "tools"

sys.path.insert(0, str(TOOLS))
try:
    from words import exceptions, python_text, rules
    from words.checking import Finding, UnreadableError, check_text
    from words.identifier_rules import IDENTIFIERS
    from words.statistics import statistics
    from words.text_rules import TEXTS
finally:
    sys.path.remove(str(TOOLS))

MODULE = "src/ironbell/kube/example.py"
PAGE = "docs/example.md"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words_program", TOOLS / "words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def create(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return create


def shown(source: str, path: str = MODULE) -> list[str]:
    """Findings as `line place text`."""
    return [f"{finding.line} {finding.place} {finding.text}" for finding in check_text(path, source)]


def example_in(rule: Any, place: rules.Place, text: str) -> tuple[str, str]:
    """A file with a text at a place that the rule applies to: its path and its source."""
    path = f"{rule.packages[0]}/example.py" if rule.packages else MODULE
    match place:
        case rules.Place.IDENTIFIER if "class" in rule.kinds:
            return path, f"class {text}:\n    pass\n"
        case rules.Place.IDENTIFIER if "function" in rule.kinds:
            return path, f"def {text}():\n    pass\n"
        case rules.Place.IDENTIFIER:
            return path, f"{text} = 1\n"
        case rules.Place.DOCSTRING if "attribute" in rule.kinds:
            return path, f'NAME = 1\n"""{text}"""\n'
        case rules.Place.DOCSTRING:
            return path, f"def name():\n    '''{text}'''\n"
        case rules.Place.COMMENT:
            return path, f"# {text}\n"
        case rules.Place.STRING:
            return path, f"name = {text!r}\n"
        case rules.Place.DOCS:
            return PAGE, f"{text}\n"


EXAMPLES = [
    pytest.param(rule, place, id=f"{rule.name}-{place.value}")
    for rule in (*IDENTIFIERS, *TEXTS)
    for place in sorted(rule.places, key=str)
]


@pytest.mark.parametrize(("rule", "place"), EXAMPLES)
def test_a_rule_finds_its_bad_example_and_not_its_good_one(rule: Any, place: rules.Place) -> None:
    path, source = example_in(rule, place, rule.bad)
    assert rule.name in [finding.rule for finding in check_text(path, source)]
    path, source = example_in(rule, place, rule.good)
    assert check_text(path, source) == []


def test_names_of_rules_are_unique() -> None:
    for table in (IDENTIFIERS, TEXTS):
        names = [rule.name for rule in table]
        assert sorted(set(names)) == sorted(names)


def test_every_rule_has_either_words_or_a_pattern() -> None:
    for rule in IDENTIFIERS:
        assert rule.words, rule.name
        assert not rule.pattern, rule.name
        assert all(re.fullmatch("[a-z_]+", word) for word in rule.words), rule.name
    for rule in TEXTS:
        assert rule.pattern, rule.name
        assert not rule.words, rule.name


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "told: int = 1",
        "_TOLD = 1",
        "was_told_at = 1",
        "class ToldReason: pass",
        "def is_told(): pass",
        "async def is_told(): pass",
        "def f(told): pass",
        "def f(*, told=1): pass",
        "def f(*told): pass",
        "def f(**told): pass",
        "f = lambda told: 1",
        "self.told = 1",
        "for told in (): pass",
        "x = [1 for told in ()]",
        "with f() as told: pass",
        "import x as told",
        "from x import y as told",
        "try: pass\nexcept E as told: pass",
        "if (told := f()): pass",
        "match x:\n    case [told]: pass",
        "match x:\n    case [*told]: pass",
        "match x:\n    case C() as told: pass",
    ],
)
def test_identifiers_are_found_where_they_are_defined(source: str) -> None:
    assert [finding.rule for finding in check_text(MODULE, source)] == ["speech"]


@pytest.mark.parametrize(
    "source",
    [
        "f(told)",
        "f(told=1)",
        "x = y.told",
        "import told",
        "from told import y",
        "untold = 1",
        "toldest = 1",
        "look_up = 1",
    ],
)
def test_uses_and_other_words_are_not_found(source: str) -> None:
    assert check_text(MODULE, source) == []


def test_the_names_of_modules_and_packages_are_identifiers() -> None:
    assert shown("", "src/ironbell/kube/told.py") == ["1 identifier told"]
    assert shown("", "src/ironbell/told/__init__.py") == ["1 identifier told"]


def test_lines_are_those_of_the_file() -> None:
    source = '''"""A module.

What it does is
told here.
"""

X = 1  # written anew
# a comment of two lines that is
# no sentence
y = (
    f"a {X} b"
    "is gone"
)
'''
    assert shown(source) == ["4 docstring told", "7 comment anew", "8 comment is no s", "11 string gone"]


def test_code_sources_and_directives_are_not_prose() -> None:
    source = '''def f() -> None:
    """Return `what is wanted` from ``told``.

    Source: example/told: told.py,
    told again.
    """
    x = 1  # noqa: told
    # see `told`
'''
    assert shown(source) == []


def test_strings_are_those_that_people_read() -> None:
    assert shown('x = "gone"') == []
    assert shown('x = "it is gone"') == ["1 string gone"]
    assert shown("x = f\"{y} is {'it is gone'}\"") == ["1 string gone"]
    assert shown('x = f"{y} is no {z}"') == ["1 string is no {"]


def test_pages_are_checked_without_code_and_addresses() -> None:
    page = """# Told

It is `told` [here](told.md).

```sh
echo told
```

    told

| told | `told` |
| --- | --- |
| a | it is
- The answer is
  told
<!-- told -->
"""
    assert shown(page, PAGE) == ["1 docs Told", "11 docs told", "15 docs told"]


def test_a_finding_names_place_remedy_and_guide() -> None:
    (finding,) = check_text(MODULE, "\ntold = 1")
    assert str(finding) == (
        f'{MODULE}:2: identifier "told": write "report", "message" or "reason" (docs/contributing/words.md)'
    )


@pytest.mark.parametrize("exception", exceptions.EXCEPTIONS, ids=lambda exception: exception.text)
def test_every_exception_is_needed(exception: Any) -> None:
    paths = (*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"))
    covered = [path for path in paths if fnmatchcase(path.relative_to(ROOT).as_posix(), exception.path)]
    assert any(exception.text == "*" or exception.text in path.read_text() for path in covered), exception.reason


def test_exceptions_cover_names_and_parts_of_texts() -> None:
    assert check_text(MODULE, "def connection_made(self): pass") == []
    assert check_text(MODULE, "def why(): pass") == []
    assert shown("why = 1") == ["1 identifier why"]
    assert check_text("src/ironbell/codec/proto/x_pb2.py", "told = 1") == []
    exempt = exceptions.Exempt("the client is gone", "an example", place=None)
    (passage,) = [
        each for each in python_text.passages(MODULE, "x = 'the client is gone'") if each.place is rules.Place.STRING
    ]
    assert exempt.covers_part(MODULE, passage, 14, 18)
    assert not exempt.covers_part(MODULE, passage, 14, 19)


def test_status_count_and_scope(
    program: ModuleType, repository: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository({"src/a.py": "told = 1\n", "docs/b.md": "Written anew.\n", "docs/c.md": "Written again.\n"})
    assert program.main([], root=root) == 1
    assert capsys.readouterr().out.splitlines() == [
        'docs/b.md:1: docs "anew": write "again", or the verb with "re-" (docs/contributing/words.md)',
        'src/a.py:1: identifier "told": write "report", "message" or "reason" (docs/contributing/words.md)',
        "2 banned words in 3 files",
    ]
    assert program.main(["--only", str(root / "docs/c.md")], root=root) == 0
    assert capsys.readouterr().out == "0 banned words in 1 files\n"
    assert program.main(["--only", str(root / "docs"), str(root / "docs/b.md")], root=root) == 1
    assert capsys.readouterr().out.endswith("1 banned word in 2 files\n")


def test_the_clean_list_is_held_to_the_rules(
    program: ModuleType, repository: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository({"src/a.py": "told = 1\n", "src/b/c.py": "x = 1\n", "clean.txt": "# in line\nsrc/b  # all\n\n"})
    assert program.main(["--clean"], root=root, clean=root / "clean.txt") == 0
    (root / "src/b/d.py").write_text("told = 1\n")
    assert program.main(["--clean"], root=root, clean=root / "clean.txt") == 1
    capsys.readouterr()
    (root / "clean.txt").write_text("src/missing\n")
    assert program.main(["--clean"], root=root, clean=root / "clean.txt") == 2
    assert capsys.readouterr().err == (
        "words: clean.txt: src/missing does not exist; name a file or folder in the repository\n"
    )


def test_a_path_outside_and_a_file_that_cannot_be_parsed_are_errors(
    program: ModuleType, repository: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository({"src/a.py": "told = = 1\n"})
    assert program.main([], root=root) == 2
    assert capsys.readouterr().err.startswith("words: src/a.py: invalid syntax")
    assert program.main(["--only", "/etc/hosts"], root=root) == 2
    assert "--only: /etc/hosts is outside" in capsys.readouterr().err
    with pytest.raises(UnreadableError):
        list(program.check_files(root, [root / "src/missing.py"]))


def test_rules_can_be_chosen(
    program: ModuleType, repository: Callable[[dict[str, str]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository({"src/a.py": "told = 1\nfound = 2\n"})
    assert program.main(["--rule", "found"], root=root) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("src/a.py:2:")
    with pytest.raises(SystemExit, match="2"):
        program.main(["--rule", "unheard"], root=root)
    assert "--rule: unknown unheard; the rules are " in capsys.readouterr().err


def test_statistics_count_rules_packages_and_places() -> None:
    findings = [
        Finding("src/ironbell/kube/a.py", 1, "identifier", "told", "speech", ""),
        Finding("src/ironbell/kube/testing/b.py", 1, "string", "gone", "gone", ""),
        Finding("docs/guide/c.md", 1, "docs", "gone", "gone", ""),
    ]
    lines = [line.split() for line in statistics(findings).splitlines()]
    assert ["gone", "(text)", "2"] in lines
    assert ["speech", "(identifiers)", "1"] in lines
    assert ["kube", "1", "1", "0", "0", "0", "0"] in lines
    assert ["kube/testing", "1", "0", "0", "0", "1", "0"] in lines
    assert ["docs/guide", "1", "0", "0", "0", "0", "1"] in lines
    assert ["all", "3", "1", "0", "0", "1", "1"] in lines


def test_everything_in_the_clean_list_is_clean(program: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--clean"]) == 0, capsys.readouterr().out
