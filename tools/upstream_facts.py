"""Write tests/facts: what upstream's definitions and manifests say, without upstream's prose and code.

    .venv/bin/python tools/upstream_facts.py FOLDER           write the facts
    .venv/bin/python tools/upstream_facts.py FOLDER --check   list what is out of date; status 1 if anything is

FOLDER has upstream's files as their projects publish them: `crds/SYSTEM/**` and `manifests/SYSTEM/**`.
tests/facts/README.md says which projects these are, and describes the facts. The rules are:

- Files are parsed and written again, with sorted keys. Comments are lost by that; so are descriptions of schemas and
  patches, but not fields that have the name `description`.
- The definitions of one system share a file, in which an equal part is written once and referred to by a YAML alias.
- A manifest keeps its variables, and whether a value is quoted: `${COUNT}` may become a number, `"${COUNT}"` may not.
- Code is not copied: text of several lines, and commands for a shell. tests/facts/texts.yaml has a text of ours for
  each such place. Rules (CEL), and the templates that give one field its value in a ClusterClass's patch, are facts.
- tests/facts/originals.txt has the digest of each file, which is what its version is known by, and says whether the
  file has code.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ironbell.codec import goyaml

FACTS = Path(__file__).parent.parent / "tests" / "facts"
SHARED_FROM = 300
"""Characters of JSON from which an equal part of several schemas is written once."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDLESS = 1_000_000
_LINE = re.compile(r"^\$\{(\w+)\}$", re.MULTILINE)
"""A variable that stands for whole lines. No YAML: while the file is parsed, it is a key with this prefix."""
_LINE_KEY = "zz-line-"
_COMMANDS = re.compile(r"(Commands|runcmd|bootcmd)\[\d+\]$")
_PATCH_VALUE = re.compile(r"\.jsonPatches\[\d+\]\.valueFrom\.template$")
_FIELDS = re.compile(r"(?<!\.properties)\.properties$")
_OPERATOR = re.compile(r" (&&|\|\||>>?) ")
_ACTION = re.compile(r"\{\{.*?\}\}")


class _Dumper(yaml.SafeDumper):
    """Writes a part that several places share once, under a name that depends on nothing but its content."""

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, _Shared)

    def generate_anchor(self, node: yaml.Node) -> str:
        plain = yaml.serialize(node, Dumper=yaml.SafeDumper)
        return f"s{hashlib.sha256(plain.encode()).hexdigest()[:10]}"

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless)


class _Shared(dict[str, Any]):
    """A part of schemas that is written once."""


_Dumper.add_representer(_Shared, lambda dumper, data: dumper.represent_dict(data))


@dataclass(frozen=True)
class Original:
    """One of upstream's files."""

    folder: Path
    name: str
    """Below the folder, as `manifests/capt/cluster-template.yaml`."""

    @cached_property
    def content(self) -> bytes:
        return (self.folder / self.name).read_bytes()

    @cached_property
    def nodes(self) -> list[yaml.Node]:
        text = _LINE.sub(lambda found: f"{_LINE_KEY}{found[1]}: line", self.content.decode())
        return [node for node in yaml.compose_all(text, _LOADER) if node is not None]

    def texts(self) -> list[str]:
        """The texts of it that are code."""
        values = ((place, scalar.value) for node in self.nodes for place, scalar in _scalars(node))
        return [text for place, text in values if is_code(place, text)]

    def line_of_list(self) -> str:
        kind = "code" if self.name.startswith("manifests/") and self.texts() else "facts"
        return f"{hashlib.sha256(self.content).hexdigest()} {kind} {self.name}"


def is_code(place: str, text: str) -> bool:
    """Whether the text at a place, such as `.spec.files[0].content`, is a program's or for a program."""
    if _PATCH_VALUE.search(place) or place.rsplit(".", 1)[-1] in {"rule", "messageExpression"}:
        return False
    if "\n" in text.strip() or text.startswith("#!") or _COMMANDS.search(place):
        return True
    return _OPERATOR.search(_ACTION.sub("", text)) is not None


def _scalars(node: yaml.Node, place: str = "") -> Iterator[tuple[str, yaml.ScalarNode]]:
    """All values of a document that are facts or code, with their places."""
    if isinstance(node, yaml.ScalarNode):
        yield place, node
    elif isinstance(node, yaml.SequenceNode):
        for index, entry in enumerate(node.value):
            yield from _scalars(entry, f"{place}[{index}]")
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not is_prose(place, key.value, value):
                yield from _scalars(value, f"{place}.{key.value}")


def is_prose(place: str, key: str, value: yaml.Node) -> bool:
    """Whether an entry describes, and says nothing that a program reads."""
    return key == "description" and isinstance(value, yaml.ScalarNode) and not _FIELDS.search(place)


class Texts:
    """Our own texts for the places of code."""

    def __init__(self, path: Path) -> None:
        self._entries = yaml.safe_load(path.read_text())
        self._used = [False] * len(self._entries)

    def text(self, name: str, place: str) -> str:
        """Raises:
        SystemExit: there is none for this place.
        """
        for index, entry in enumerate(self._entries):
            if fnmatchcase(f"{name} {place}", re.sub(r"\[(\d+|\*)\]", r"[[]\1]", f"{entry['file']} {entry['place']}")):
                self._used[index] = True
                text: str = entry["text"]
                return text
        raise SystemExit(f"tests/facts/texts.yaml has no text for {name}, {place}: add one of our own")

    def unused(self) -> list[str]:
        pairs = zip(self._entries, self._used, strict=True)
        return [f"{entry['file']} {entry['place']}" for entry, used in pairs if not used]


def manifest(original: Original, texts: Texts) -> str:
    """A manifest's facts."""

    def written_again(node: yaml.Node, place: str) -> yaml.Node:
        if isinstance(node, yaml.MappingNode):
            kept = [pair for pair in node.value if not is_prose(place, pair[0].value, pair[1])]
            pairs = [(key, written_again(value, f"{place}.{key.value}")) for key, value in kept]
            return yaml.MappingNode(node.tag, sorted(pairs, key=lambda pair: pair[0].value), flow_style=not pairs)
        if isinstance(node, yaml.SequenceNode):
            entries = [written_again(entry, f"{place}[{index}]") for index, entry in enumerate(node.value)]
            return yaml.SequenceNode(node.tag, entries, flow_style=not entries)
        if not isinstance(node, yaml.ScalarNode):
            raise TypeError(node)
        if is_code(place, node.value):
            text = texts.text(original.name, place)
            return yaml.ScalarNode(node.tag, text, style="|" if "\n" in text else node.style)
        return yaml.ScalarNode(node.tag, node.value, style="|" if "\n" in node.value else node.style)

    nodes = [written_again(node, "") for node in original.nodes]
    text = yaml.serialize_all(nodes, Dumper=yaml.SafeDumper, width=_ENDLESS, explicit_start=True, allow_unicode=True)
    return re.sub(rf"^{_LINE_KEY}(\w+): line$", r"${\1}", text, flags=re.MULTILINE)


def definitions(originals: list[Original]) -> str:
    """The facts of one system's definitions: of each file, its documents."""
    facts = {
        original.name.split("/", 2)[2]: [_plain(document) for document in goyaml.load_all(original.content) if document]
        for original in originals
    }
    counts: Counter[str] = Counter()
    _count(facts, counts)
    return yaml.dump(_share(facts, counts, {}), Dumper=_Dumper, width=120, default_flow_style=None, sort_keys=True)


def _plain(value: Any, *, fields: bool = False) -> Any:
    """Without descriptions; `fields` says that the keys are names of fields."""
    if isinstance(value, dict):
        return {
            key: _plain(child, fields=key == "properties" and not fields)
            for key, child in value.items()
            if fields or key != "description" or not isinstance(child, str)
        }
    return [_plain(child) for child in value] if isinstance(value, list) else value


def _count(value: Any, counts: Counter[str]) -> None:
    if isinstance(value, dict):
        text = json.dumps(value, sort_keys=True)
        counts[text] += 1
        if counts[text] > 1 and len(text) >= SHARED_FROM:
            return  # its parts are written with it
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _count(child, counts)


def _share(value: Any, counts: Counter[str], known: dict[str, _Shared]) -> Any:
    if isinstance(value, list):
        return [_share(child, counts, known) for child in value]
    if not isinstance(value, dict):
        return value
    text = json.dumps(value, sort_keys=True)
    if text in known:
        return known[text]
    parts = {key: _share(child, counts, known) for key, child in value.items()}
    if counts[text] < 2 or len(text) < SHARED_FROM:
        return parts
    known[text] = _Shared(parts)
    return known[text]


def facts(folder: Path, texts: Texts) -> dict[str, str]:
    """The content of each file of facts, by its name below tests/facts."""
    originals = [Original(folder, name) for name in _names(folder)]
    found = {"originals.txt": "".join(f"{original.line_of_list()}\n" for original in originals)}
    systems: dict[str, list[Original]] = {}
    for original in originals:
        kind, system, _ = original.name.split("/", 2)
        if kind == "crds":
            systems.setdefault(system, []).append(original)
        else:
            found[original.name] = manifest(original, texts)
    for system, of_system in systems.items():
        found[f"crds/{system}.yaml"] = definitions(of_system)
    return found


def difference(folder: Path) -> list[str]:
    """The files of facts that are not what upstream's files in a folder give."""
    texts = Texts(FACTS / "texts.yaml")
    wanted = facts(folder, texts)
    held = {name: (FACTS / name).read_text() for name in [*_names(FACTS), "originals.txt"] if (FACTS / name).is_file()}
    unused = {f"texts.yaml: {entry} is not the place of any code" for entry in texts.unused()}
    return sorted({name for name in wanted | held if wanted.get(name) != held.get(name)} | unused)


def _names(folder: Path) -> list[str]:
    """The definitions and manifests in a folder."""
    paths = (path for kind in ("crds", "manifests") for path in folder.glob(f"{kind}/**/*.yaml"))
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def main(arguments: list[str]) -> int:
    match arguments:
        case [folder, "--check"]:
            wrong = difference(Path(folder))
            for name in wrong:
                sys.stderr.write(f"out of date: tests/facts/{name}\n")
            return 1 if wrong else 0
        case [folder]:
            wanted = facts(Path(folder), Texts(FACTS / "texts.yaml"))
            for name in _names(FACTS):
                (FACTS / name).unlink()
            for name, text in wanted.items():
                (FACTS / name).parent.mkdir(parents=True, exist_ok=True)
                (FACTS / name).write_text(text)
            return 0
        case _:
            sys.stderr.write(__doc__ or "")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
