"""Writes the data files of the versions that are served but not stored, from upstream's definitions.

Use: `python tools/older_versions.py FOLDER`, where FOLDER holds upstream's CustomResourceDefinitions as YAML.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from ironbell.api.crd.older_versions import REFERENCE
from ironbell.app.registry import KINDS
from ironbell.codec import goyaml

WORTH_SHARING = 120
"""Characters from which on a schema that occurs twice is kept once."""


def bare(value: Any) -> Any:
    """The value without descriptions, which are prose; a property may well be called so."""
    if isinstance(value, dict):
        return {
            key: bare(entry) for key, entry in value.items() if not (key == "description" and isinstance(entry, str))
        }
    return [bare(entry) for entry in value] if isinstance(value, list) else value


def text(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"))


class Pool:
    """Schemas that occur more than once."""

    def __init__(self, kinds: dict[str, Any]) -> None:
        self._seen: Counter[str] = Counter()
        self._count(kinds)
        self.shared: list[Any] = []
        self._numbers: dict[str, int] = {}

    def _count(self, value: Any) -> None:
        if isinstance(value, dict):
            written = text(value)
            self._seen[written] += 1
            if self._seen[written] > 1:
                return
        for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._count(entry)

    def packed(self, value: Any) -> Any:
        """The value with what is shared replaced by references."""
        if isinstance(value, list):
            return [self.packed(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        written = text(value)
        if len(written) < WORTH_SHARING or self._seen[written] < 2:
            return {key: self.packed(entry) for key, entry in value.items()}
        if written not in self._numbers:
            inner = {key: self.packed(entry) for key, entry in value.items()}
            self._numbers[written] = len(self.shared)
            self.shared.append(inner)
        return {REFERENCE: self._numbers[written]}


def main(folder: Path) -> None:
    """Renews every data file."""
    documents = [document for path in sorted(folder.glob("*.yaml")) for document in goyaml.load_all(path.read_text())]
    by_name = {document["metadata"]["name"]: document for document in documents if document}
    groups: dict[str, dict[str, Any]] = defaultdict(dict)
    for kind in KINDS:
        if kind.older_versions:
            versions = by_name[f"{kind.plural}.{kind.group}"]["spec"]["versions"]
            groups[kind.older_versions][kind.plural] = [bare(v) for v in versions if v["name"] != kind.version]
    for package, kinds in groups.items():
        pool = Pool(kinds)
        packed = pool.packed(kinds)
        lines = ",\n".join(text(entry) for entry in pool.shared)
        rows = ",\n".join(f"{text(plural)}:{text(versions)}" for plural, versions in packed.items())
        path = Path(str(files(package) / "older_versions.json"))
        path.write_text(f'{{"shared":[\n{lines}\n],\n"kinds":{{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
