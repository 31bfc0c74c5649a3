"""`-o json`: the result of a command as one JSON document on standard output.

A document holds values (kind, namespace, name, result, reason, time), never text to be parsed. Progress goes to
standard error. A command that fails ends with a status other than 0 and prints an object `error` on standard output,
beside the line on standard error; see `problems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ironbell.base.printable import escaped_json, printable

if TYPE_CHECKING:
    from ironbell.operations.progress import Progress

JSON = "json"


def print_json(value: Any) -> None:
    """Print one document."""
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """One document as it is printed. Control characters are escapes, so that no terminal follows them."""
    return escaped_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_progress(progress: Progress) -> None:
    """Print a step of an operation on standard error."""
    click.echo(printable(str(progress)), err=True)


def result_document(result: str, **values: Any) -> dict[str, Any]:
    """The document of a command that changed something: its result in one word, its end time, and the values."""
    from ironbell.base.clock import SystemClock, rfc3339

    return {"result": result, "time": rfc3339(SystemClock().now()), **values}


def reference(kind: str, namespace: str, name: str, **values: Any) -> dict[str, Any]:
    """An object in a document."""
    return {"kind": kind, "namespace": namespace, "name": name, **values}


_JOINED = frozenset(("-ojson", "--output=json", "--format=json"))
_SEPARATE = frozenset(("-o", "--output", "--format"))


def requests_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line requests JSON, even one that cannot be parsed: its error is then JSON as well."""
    following = [*arguments[1:], ""]
    return any(
        word in _JOINED or (word in _SEPARATE and value == JSON)
        for word, value in zip(arguments, following, strict=False)
    )
