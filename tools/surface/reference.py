"""What the committed pages of docs/reference and the texts of the source say: metrics, names of annotations, pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from surface.checkout import Checkout
from surface.exposition import documented, lines

PAGES = ("cli.md", "inventory.md", "kinds.md", "ports.md", "writes.md")
_NAMED = re.compile(r"^\| (`[^|]*`[^|]*) \|", re.MULTILINE)
_QUALIFIED = re.compile(r"(?<![\w./-])((?:[a-z0-9-]+\.)+[a-z0-9-]+/[A-Za-z0-9][A-Za-z0-9._-]*)(?![\w./-])")
_DOMAINS = ("ironbell.dev", "tinkerbell.org", "x-k8s.io", "k8s.io", "kubernetes.io")
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?")


def reference(checkout: Checkout) -> dict[str, str]:
    """All files of this module."""
    return documented_metrics(checkout) | names(checkout) | pages(checkout)


def metrics_page(checkout: Checkout) -> str:
    """The page of metrics."""
    return (checkout.folder / "docs" / "reference" / "metrics.md").read_text()


def documented_metrics(checkout: Checkout) -> dict[str, str]:
    """The file `metrics/documented.txt`."""
    return {"metrics/documented.txt": "".join(f"{line}\n" for line in lines(documented(metrics_page(checkout))))}


def names(checkout: Checkout) -> dict[str, str]:
    """The files `names/documented.txt`, from the page of annotations, labels and finalizers, and `names/source.txt`."""
    page = (checkout.folder / "docs" / "reference" / "annotations.md").read_text()
    return {
        "names/documented.txt": _sorted(name for row in _NAMED.findall(page) for name in re.findall(r"`([^`]+)`", row)),
        "names/source.txt": _sorted(source_names(checkout.folder / "src")),
    }


def source_names(folder: Path) -> Iterator[str]:
    """The qualified names, such as `ironbell.dev/hold`, that are strings of the source, wherever they are defined.
    Docstrings are no strings of the source, and API versions are no such names."""
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_bytes())
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                for name in _QUALIFIED.findall(node.value):
                    domain, _, rest = name.partition("/")
                    if domain.endswith(_DOMAINS) and not _VERSION.fullmatch(rest):
                        yield name.rstrip(".")


def pages(checkout: Checkout) -> dict[str, str]:
    """A file `reference/PAGE` for each generated page, and that of ports."""
    folder = checkout.folder / "docs" / "reference"
    return {f"reference/{name}": (folder / name).read_text() for name in PAGES}


def _sorted(found: Iterator[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(set(found)))
