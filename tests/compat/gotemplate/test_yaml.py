"""YAML is read and written as sigs.k8s.io/yaml does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from ironbell.codec import goyaml
from ironbell.codec.gotemplate import TemplateError, render
from ironbell.codec.gotemplate.golib.gojson import floats

_TOKENS = [
    "a", "b", "1", "010", "yes", "n", "~", "null", "1e3", ".5", "-", "- ", ": ", ":", "? ", "\n", "\n  ", "\n    ",
    "[", "]", "{", "}", ", ", '"x"', "'y'", "|\n", ">\n", "|-\n", " #c", "&a ", "*a", "!!str ", "!!int ", "!!float ",
    "!x ", "<<: ", "---\n", "...\n", "0x1F", "12:30", "2001-01-01", ".inf", "+1", "1_000", "é", '"\\u00e9"', "\t", " ",
    "%", "@", "`", "true", "1.0", "18446744073709551615", "!!binary aGk=", "a: 1", "- b", "x: y\n", "  z: 1\n", "089",
    "0o7", "-0b1", "1.e2", "1e400",
]  # fmt: skip
_TEXTS = [
    "y", "n", "1e3", "0o17", "+.5", "12:30", "2001-01-01", "a: b", "- a", "#x", "a #b", " a", "a ", "a\nb",
    "a\nb\n", "\na", "a\n\n", " a\nb", "é", "😀", "\x07", "\t", "a\tb", "", "~", "null", "true", "1", "1.0", "-1",
    "0x1F", "<<", "=", ".", "-", "?", "!x", "&a", "*a", "%a", "@", "`", "{", "[", "]", "}", ",", "'", '"', "a'b", 'a"b',
    "a:", "a :b", ":a", "a" * 130, "k1", "k10", "k2", "k02", "A", "_", "-a", "\x85", "\x7f", "\ufeff", "a\r\nb", "a\rb",
    "2001-01-01T00:00:00Z", "1:30:20", "0b1", "1_0", ".inf", "NaN", ".nan", "\n", "  \n a", "a\n  b\n c", "# x\ny",
    "---", "--- a", "...", "a\n---\nb",
]  # fmt: skip
_SCALARS = [1, -5, 0, 1.5, 1e21, 1e-7, 1e300, 123456789.0, True, False, None, 1e16, 1.0]


def test_texts_mean_the_same_values(oracle: Callable[..., list[Any]]) -> None:
    source = random.Random(3)
    texts = ["".join(source.choice(_TOKENS) for _ in range(source.randint(1, 8))) for _ in range(2500)]
    for text, answer in zip(texts, oracle([{"mode": "yaml-load", "text": text} for text in texts]), strict=True):
        try:
            got: Any = floats(goyaml.load(text))
        except goyaml.YamlError:
            got = goyaml.YamlError
        wanted = goyaml.YamlError if answer.output is None else floats(msgspec.json.decode(answer.output))
        assert got == wanted, f"{text!r}\nGo says: {answer.error}"


def _value(source: random.Random, depth: int) -> Any:
    choice = source.random()
    if depth <= 0 or choice < 0.5:
        return source.choice(_TEXTS) if source.random() < 0.6 else source.choice(_SCALARS)
    if choice < 0.75:
        return [_value(source, depth - 1) for _ in range(source.randint(0, 3))]
    return {source.choice(_TEXTS): _value(source, depth - 1) for _ in range(source.randint(0, 4))}


def test_values_are_written_as_the_same_text(oracle: Callable[..., list[Any]]) -> None:
    source = random.Random(4)
    values = [_value(source, 3) for _ in range(2500)]
    for value, answer in zip(values, oracle([{"mode": "yaml-dump", "value": value} for value in values]), strict=True):
        try:
            got: bytes | None = render("{{ toYaml .v }}", {"v": floats(value)}).encode() + b"\n"
        except TemplateError:
            got = None
        assert got == answer.output, f"{value!r}\nGo says: {answer.error}"
