"""Field tables of the built-in kinds in Kubernetes' protocol buffers.

The data is `protobuf.json`, which `tools/protobuf_facts` prints: `NAME:TYPE` for each number of a message. Types are
`string`, `int`, `bool`, `double`, `bytes`, `time`, `microtime`, `json` (bytes that are a JSON value), `quantity`,
`intstr`, `strings` (a message that is a list), `schemaOrBool`, `schemaOrList` and `schemaOrStrings` (where a schema has
alternatives), or a message's name. A prefix may be `*` where Go distinguishes zero from absent, `=` where JSON has zero
values, `+` where JSON has the message's fields in place of the message, `[]` for repeated fields, `{}` for maps by
string. A message's table is decoded on first use.

Source: kubernetes/api: */types.go (tags); kubernetes/apimachinery: pkg/apis/meta/v1/types.go.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

DELETE_OPTIONS = "meta/v1.DeleteOptions"
LIST_META = "meta/v1.ListMeta"
SCHEMA = "apiextensions/v1.JSONSchemaProps"


class Field(msgspec.Struct, frozen=True):
    """Name and type of a numbered field."""

    name: str
    kind: str
    is_list: bool
    is_map: bool
    is_inline: bool
    keeps_zero: bool


class _Facts(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    messages: dict[str, msgspec.Raw]


@cache
def _facts() -> _Facts:
    return msgspec.json.decode((files(__package__) / "protobuf.json").read_bytes(), type=_Facts)


def kinds() -> list[tuple[str, str]]:
    """All kinds that are known in this form, as API version and kind."""
    return [(api_version, kind) for api_version, _, kind in (name.partition(" ") for name in _facts().kinds)]


def message_names() -> frozenset[str]:
    """The names of all messages."""
    return frozenset(_facts().messages)


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind, or None."""
    return DELETE_OPTIONS if kind == "DeleteOptions" else _facts().kinds.get(f"{api_version} {kind}")


@cache
def fields_of(message: str) -> dict[int, Field]:
    """The fields of a message, by number."""
    table = msgspec.json.decode(_facts().messages[message], type=dict[str, str])
    return {int(number): _field(described) for number, described in table.items()}


def _field(described: str) -> Field:
    name, _, kind = described.partition(":")
    bare = kind.lstrip("*=+")
    marks = kind[: len(kind) - len(bare)]
    return Field(
        name, bare.removeprefix("[]").removeprefix("{}"), bare.startswith("[]"), bare.startswith("{}"), "+" in marks,
        keeps_zero="*" in marks or "=" in marks,
    )  # fmt: skip
