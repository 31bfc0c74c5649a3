"""JSON values to YAML that Go and PyYAML both read back as the same values.

The layout is sigs.k8s.io/yaml's, byte for byte: keys in go-yaml's natural order, lists not indented below their key,
text with line breaks as literal blocks, nothing folded. A string is quoted when go-yaml would not read it back as a
string and, unless `go_exact`, also when PyYAML (cloud-init) would not: the two disagree on some forms.

Source: yaml/go-yaml (branch v2): encode.go, sorter.go; kubernetes-sigs/yaml: yaml.go (JSONToYAML).
"""

from __future__ import annotations

import functools
import io
import math
import re
from typing import Any

import yaml
from yaml._yaml import CEmitter
from yaml.nodes import Node as YamlNode
from yaml.resolver import Resolver

from ironbell.codec.goyaml.compose import STR
from ironbell.codec.goyaml.errors import YamlError
from ironbell.codec.goyaml.floats import format_float
from ironbell.codec.goyaml.resolve import is_timestamp, resolve

_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_PYYAML = Resolver()


def dump(value: Any, *, go_exact: bool = False, sort_keys: bool = True) -> str:
    """One document, ending in a newline.

    Raises:
        YamlError: a value that JSON does not have, or text that is no Unicode.
    """
    build = functools.partial(_node, go_exact=go_exact, sort_keys=sort_keys)
    out = io.StringIO()
    emitter = _Emitter(out, width=-1, allow_unicode=True)
    try:
        emitter.open()
        emitter.serialize(build(value))
        emitter.close()
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"cannot be written as YAML: {error}") from None
    except RecursionError:
        raise YamlError("nested too deeply to be written") from None
    finally:
        emitter.dispose()
    # libyaml ends a document that holds an open-ended block scalar by a mark that Go leaves out. The mark has a line of
    # its own: a text may end in three dots too.
    text = out.getvalue()
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


class _Emitter(CEmitter):
    """libyaml's emitter; every tag is implied, so that only styles decide."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        return STR

    def descend_resolver(self, parent: Any, index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


def _node(value: Any, *, go_exact: bool, sort_keys: bool) -> YamlNode:
    match value:
        case str():
            return yaml.ScalarNode(STR, value, style=_style(value, go_exact=go_exact))
        case None:
            return yaml.ScalarNode(STR, "null")
        case bool():
            return yaml.ScalarNode(STR, "true" if value else "false")
        case int():
            return yaml.ScalarNode(STR, str(value))
        case float():
            return yaml.ScalarNode(STR, _float_text(value, go_exact=go_exact))
        case list() | tuple():
            items = [_node(item, go_exact=go_exact, sort_keys=sort_keys) for item in value]
            return yaml.SequenceNode(STR, items, flow_style=False)
        case dict():
            keys = sorted(value, key=functools.cmp_to_key(compare_keys)) if sort_keys else list(value)
            pairs = [
                (
                    _node(key, go_exact=go_exact, sort_keys=sort_keys),
                    _node(value[key], go_exact=go_exact, sort_keys=sort_keys),
                )
                for key in keys
            ]
            return yaml.MappingNode(STR, pairs, flow_style=False)
    raise YamlError(f"a {type(value).__name__} has no form in YAML")


def _style(text: str, *, go_exact: bool) -> str | None:
    if "\n" in text:
        return "|"
    if needs_quotes(text) or not (go_exact or (text != "<<" and _pyyaml_reads_text(text))):
        return '"'
    return None


def needs_quotes(text: str) -> bool:
    """Return whether go-yaml v2 would read the bare text as something other than this string."""
    if not isinstance(resolve(text), str):
        return True
    first = text[0]
    if not (first.isdigit() or first in "+-"):
        return False
    return is_timestamp(text) or _BASE60.fullmatch(text) is not None


def _pyyaml_reads_text(text: str) -> bool:
    tag = _PYYAML.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return str(tag) == STR


def _float_text(value: float, *, go_exact: bool) -> str:
    if not math.isfinite(value):
        raise YamlError(f"{value} has no form in JSON")
    if not go_exact and value.is_integer() and abs(value) < 1 << 53:
        return str(int(value))
    return format_float(value)


def compare_keys(left: str, right: str) -> int:
    """go-yaml's order of keys: letters after other characters, runs of digits by their number."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return -1 if _less(left, right, index) else 1
    return (len(left) > len(right)) - (len(left) < len(right))


def _less(left: str, right: str, index: int) -> bool:
    """Return whether `left` sorts before `right`; `index` is where they first differ."""
    a, b = left[index], right[index]
    if a.isalpha() and b.isalpha():
        return a < b
    if a.isalpha() or b.isalpha():
        return b.isalpha()
    start = "1" if "0" in (a, b) and _number_before(left, index) else ""
    left_run, right_run = _digits(left, index), _digits(right, index)
    left_number, right_number = int(start + left_run or "0"), int(start + right_run or "0")
    if left_number != right_number:
        return left_number < right_number
    if len(left_run) != len(right_run):
        return len(left_run) < len(right_run)
    return a < b


def _number_before(text: str, index: int) -> bool:
    for position in range(index - 1, -1, -1):
        if not text[position].isdecimal():
            return False
        if text[position] != "0":
            return True
    return False


def _digits(text: str, index: int) -> str:
    end = index
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[index:end]
