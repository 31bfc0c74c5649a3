"""The page about the architecture names every package, process and component, and invents none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from ironbell.app.components import COMPONENTS, Role
from ironbell.app.site.up import CORE, LAB, SIMULATION
from ironbell.app.wire.config import BOOT_PROCESS, SERVERS, WORKFLOW_PROCESS
from ironbell.controllers.tink.rendering import child as rendering_child

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = ROOT / "src/ironbell"
PAGE: Final = (ROOT / "docs/architecture.md").read_text()
_CODE: Final = re.compile(r"`([^`\n]+)`")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a section's tables, without their heads."""
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
    heads = {index for index, cells in enumerate(lines) if set(cells[0].strip()) <= {"-", " "}}
    return [
        [cell.strip() for cell in cells]
        for index, cells in enumerate(lines)
        if index not in heads and index + 1 not in heads
    ]


def names(text: str) -> list[str]:
    return _CODE.findall(text)


def packages_of(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


def modules_of(imports: list[str]) -> list[str]:
    return [name for layer in imports for name in re.findall(r"\w+", layer)]


def test_every_package_has_a_row() -> None:
    named = [name for cells in rows(section("Layers")) for name in names(cells[0] + cells[1])[:1]]
    assert sorted(named) == sorted(packages_of(SOURCE))


def test_layers_are_those_that_import_linter_checks() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    numbered = [names(cells[1])[0] for cells in rows(section("Layers")) if cells[0].isdigit()]
    assert numbered == [name for name in modules_of(layers) if name in numbered]
    assert set(modules_of(layers)) - set(numbered) <= {"web"}, "a layer without a package yet"


def test_every_system_and_its_components_have_a_row() -> None:
    listed = {names(cells[0])[0].removeprefix("controllers/"): names(cells[1]) for cells in rows(section("Systems"))}
    assert set(listed) == packages_of(SOURCE / "controllers")
    controllers = [component.name for component in COMPONENTS if component.role is Role.CONTROLLERS]
    assert [name for components in listed.values() for name in components] == controllers


def test_every_server_is_named() -> None:
    assert set(SERVERS) <= set(names(section("Systems")))
    (services,) = [names(cells[2]) for cells in rows(section("Layers")) if cells[1] == "`services`"]
    assert set(services) == packages_of(SOURCE / "services")


def test_every_process_has_a_row() -> None:
    listed = {names(cells[0])[0]: names(cells[1])[0] for cells in rows(section("Processes"))}
    assert set(listed) == {CORE, BOOT_PROCESS, WORKFLOW_PROCESS, "rendering", LAB, SIMULATION}
    assert listed["rendering"] == rendering_child.__name__.removeprefix("ironbell.")
    for module in listed.values():
        path = SOURCE / module.replace(".", "/")
        assert "__main__" in path.with_suffix(".py").read_text(), f"{module} is not a process"
