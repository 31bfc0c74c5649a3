"""The documentation says what is: generated pages are current, names exist, links lead somewhere, examples work."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import msgspec
import pytest

from ironbell.agent.builtins import known
from ironbell.api.tinkerbell import TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.app.components import COMPONENTS, GROUPS
from ironbell.cli.main import cli
from ironbell.codec import goyaml
from ironbell.controllers.tink.rendering.engine import TemplateEngine

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "ironbell"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")])

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_QUALIFIED = re.compile(r"(?:[a-z0-9-]+\.)*(?:ironbell\.dev|tinkerbell\.org)/(?!v\d)[A-Za-z0-9.-]+")
_OWN_NAME = re.compile(r"[\"'](ironbell\.dev/[a-z.-]+)[\"']")


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ironbell_docs_generator", ROOT / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_what_the_generator_writes_now() -> None:
    assert _generator().stale() == [], "run .venv/bin/python tools/docs.py"


def _written_names() -> dict[str, list[str]]:
    """Every name of Ironbell's or Tinkerbell's that a module writes, and where; docstrings are not counted."""
    places: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _QUALIFIED.fullmatch(node.value):
                places.setdefault(node.value, []).append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    return places


def test_every_name_of_ours_is_written_once() -> None:
    assert {name: places for name, places in _written_names().items() if len(places) > 1} == {}


def test_every_name_of_ours_is_documented_and_no_documented_name_is_invented() -> None:
    text = (DOCS / "reference" / "annotations.md").read_text()
    listed = {
        name for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    }
    unused = set(re.findall(r"`([^`]+)`", text.partition("## Known, without effect yet")[2]))
    written = set(_written_names())
    assert len(written) > 80
    assert written - listed - unused == set()
    assert {name for name in listed | unused if _QUALIFIED.fullmatch(name)} - written == set()


def test_no_documented_annotation_of_ours_is_invented() -> None:
    used = {name for path in SOURCE.rglob("*.py") for name in _OWN_NAME.findall(path.read_text())}
    pages = "\n".join(page.read_text() for page in PAGES)
    named = set(re.findall(r"(?<![\w.])(ironbell\.dev/[a-z-]+\.?)", pages))
    assert named - used - {"ironbell.dev/log"} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    text = _CODE.sub("", _FENCED.sub("", page.read_text()))
    broken = [target for target in _LINK.findall(text) if not _leads_somewhere(page, target)]
    assert broken == []


def _leads_somewhere(page: Path, target: str) -> bool:
    if "://" in target:
        return True
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not anchor or file.suffix != ".md":
        return file.exists()
    return file.is_file() and anchor in {_anchor(line) for line in file.read_text().splitlines() if line[:1] == "#"}


def _anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub forms it."""
    text = re.sub(r"[^\w\s-]", "", heading.lstrip("#").strip().lower())
    return re.sub(r"\s", "-", text)


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of `ironbell` in the pages' shell examples: the page, and the words after the program."""
    for page in PAGES:
        for language, block in _FENCED.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines() if language == "sh" else ():
                for part in re.split(r"\|", line):
                    words = shlex.split(part, comments=True)
                    names = [place for place, word in enumerate(words) if word.rsplit("/", 1)[-1] == "ironbell"]
                    if names and words[: names[0]] in ([], ["sudo"]):
                        yield page.name, words[names[0] + 1 :]


def test_commands_in_examples_exist_with_their_options() -> None:
    found = list(_commands())
    assert len(found) > 20
    assert [f"{page}: ironbell {' '.join(words)}" for page, words in found if not _is_valid(words)] == []


def _is_valid(words: list[str]) -> bool:
    command: click.Command = cli
    context = click.Context(cli, info_name="ironbell")
    while isinstance(command, click.Group):
        words = _after_options(command, words)
        found = command.get_command(context, words[0]) if words else None
        if found is None:
            return False
        command, words = found, words[1:]
    known = _options(command)
    return all(word.partition("=")[0] in known for word in words if word.startswith("-") and word != "-")


def _after_options(command: click.Command, words: list[str]) -> list[str]:
    """The words from the subcommand on: a group's own options may stand before it."""
    options = _options(command)
    while words and words[0].partition("=")[0] in options:
        name, equals, _ = words[0].partition("=")
        words = words[1 if equals or getattr(options[name], "is_flag", False) else 2 :]
    return words


def _options(command: click.Command) -> dict[str, click.Parameter]:
    return {
        option: parameter for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }


def test_example_template_renders_to_a_workflow_that_refers_to_what_there_is() -> None:
    template = TEMPLATE.decode(_json(DOCS / "examples" / "install-debian.yaml"))
    workflow = WORKFLOW.decode(_json(DOCS / "examples" / "workflow.yaml"))
    assert workflow.spec.template_ref == template.metadata.name
    rendered = TemplateEngine().workflow(
        template, _hardware(), name=workflow.metadata.name, variables=workflow.spec.hardware_map
    )
    actions = rendered.tasks[0].actions
    assert [action.image.rsplit("/", 1)[-1] for action in actions] == ["wipe", "image2disk", "writefile", "waitdaemon"]
    assert actions[2].environment["DEST_DISK"] == "/dev/vda3"


def _json(path: Path) -> bytes:
    return msgspec.json.encode(goyaml.load(path.read_bytes()))


def _hardware() -> Hardware:
    return msgspec.convert({"metadata": {"name": "node-1"}, "spec": {"disks": [{"device": "/dev/vda"}]}}, Hardware)


def test_dependencies_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=;\s]", entry)[0].lower() for entry in project["dependencies"]}
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    documented = {name.strip().lower() for row in rows for name in row.split(",")} - {"package", "---"}
    assert documented - declared == set()
    modules = {"prometheus-client": "prometheus_client", "protobuf": "google.protobuf", "pyyaml": "yaml"}
    sources = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    imported = {name for name in declared if _imports(modules.get(name, name.split(".")[0]), sources)}
    assert imported - documented == set()


def _imports(module: str, sources: str) -> bool:
    return re.search(rf"^\s*(?:import|from) {re.escape(module)}\b", sources, re.MULTILINE) is not None


def test_every_built_in_action_is_documented() -> None:
    text = (DOCS / "guide" / "templates.md").read_text()
    assert [name for name in known() if f"`{name}`" not in text and f"### {name}" not in text] == []


def test_every_component_has_its_row_in_the_page_about_clusters() -> None:
    page = (DOCS / "guide" / "cluster.md").read_text()
    words = [*(component.name for component in COMPONENTS), *GROUPS]
    assert [word for word in words if not re.search(rf"^\| `{word}`", page, re.MULTILINE)] == []
