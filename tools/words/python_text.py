"""Passages of a Python module: the identifiers that it defines, docstrings, comments and string literals.

Names that a module only uses are not listed: they are found where they are defined. String literals are those with a
space in them, which is what users and logs see; an f-string is one passage, with `{}` for each value.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from words.passages import Passage, identifier, paragraphs
from words.rules import Place

_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_KINDS = {
    ast.Module: "module",
    ast.ClassDef: "class",
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
}
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:|ruff:)|#!")
_SOURCE = re.compile(r"\s*Source:")


def passages(path: str, source: str) -> Iterator[Passage]:
    """Passages of a module; `path` is relative to the repository and names the module."""
    name = PurePosixPath(path).stem
    if name != "__init__":
        yield identifier("module", name, 1)
    else:
        yield identifier("module", PurePosixPath(path).parent.name, 1)
    tree = ast.parse(source)
    docstrings = _docstrings(tree)
    yield from _identifiers(tree)
    for node, kind in docstrings.values():
        yield from paragraphs(Place.DOCSTRING, _docstring_lines(node), kind)
    yield from _strings(tree, set(docstrings))
    if "#" in source:
        yield from _comments(source)


def _identifiers(tree: ast.Module) -> Iterator[Passage]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                yield identifier("class", name, node.lineno)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield identifier("function", name, node.lineno)
            case ast.arg(arg=name):
                yield identifier("argument", name, node.lineno)
            case ast.Name(id=name, ctx=ast.Store()):
                yield identifier("variable", name, node.lineno)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield identifier("attribute", name, node.end_lineno or node.lineno)
            case ast.alias(asname=str(name)):
                yield identifier("variable", name, node.lineno)
            case ast.ExceptHandler(name=str(name)):
                yield identifier("variable", name, node.lineno)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield identifier("variable", name, node.lineno)
            case _:
                pass


def _docstrings(tree: ast.Module) -> dict[int, tuple[ast.Constant, str]]:
    """Return docstrings with the kind of their owner, by the id of their nodes; attributes have them below."""
    docstrings: dict[int, tuple[ast.Constant, str]] = {}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for position, statement in enumerate(body if isinstance(body, list) else ()):
            match statement:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    docstrings[id(text)] = text, "attribute" if position else _KINDS.get(type(node), "")
                case _:
                    pass
    return docstrings


def _docstring_lines(node: ast.Constant) -> Iterator[tuple[int, str]]:
    """Numbered lines without code, and without the paragraph that names sources."""
    is_source = False
    for number, line in enumerate(_without_code(str(node.value)).split("\n"), node.lineno):
        is_source = bool(line.strip()) and (is_source or _SOURCE.match(line) is not None)
        yield number, "" if is_source else line


def _without_code(text: str) -> str:
    """Replace code between backticks by an empty pair of them; lines stay."""
    return _CODE.sub(lambda code: "``" + "\n" * code[0].count("\n"), text)


def _comments(source: str) -> Iterator[Passage]:
    """Comments; those in consecutive lines of their own are one text."""
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line = token.start[0]
        if block and (block[-1][0] != line - 1 or token.line[: token.start[1]].strip()):
            yield from paragraphs(Place.COMMENT, block)
            block = []
        block.append((line, _without_code(token.string.lstrip("#"))))
    yield from paragraphs(Place.COMMENT, block)


def _strings(node: ast.AST, docstrings: set[int]) -> Iterator[Passage]:
    """String literals with a space in them."""
    for child in ast.iter_child_nodes(node):
        if id(child) in docstrings:
            continue
        text = None
        if isinstance(child, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in child.values)
            for part in child.values:
                yield from _strings(part, docstrings) if isinstance(part, ast.FormattedValue) else ()
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            text = child.value
        if text is None:
            yield from _strings(child, docstrings)
        elif " " in text.strip():
            line = getattr(child, "lineno", 1)
            yield from paragraphs(Place.STRING, [(line, part) for part in _without_code(text).split("\n")], "string")
