"""What of a surface is prose for people: descriptions, help and error messages. The rest is what programs depend on."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

PROSE = ("help", "reference")
"""Parts that are prose as a whole: what they list is compared in the parts `options`, `definitions` and `metrics`."""
_FAILURE = re.compile(r"(status \d+)\nironbell: ")
"""The output of a command that fails: its status, and a message."""
_HELP = " help "
"""What stands before the help of a metric in its line."""


def differ_in_prose_only(name: str, old: str, new: str) -> bool:
    """Return whether two versions of a file of the surface are equal without their prose."""
    part, _, _ = name.partition("/")
    if part in PROSE:
        return True
    failures = _FAILURE.match(old), _FAILURE.match(new)
    if failures[0] and failures[1]:
        return failures[0][1] == failures[1][1]
    return _bare(name, old) == _bare(name, new)


def without_help(line: str) -> str:
    """A line of the metrics without a metric's help."""
    return line.partition(_HELP)[0]


def _bare(name: str, text: str) -> Any:
    try:
        if name.endswith(".json"):
            return json.dumps(_without_descriptions(json.loads(text)))  # with the order of fields
        if name.endswith(".yaml"):
            return json.dumps([_without_descriptions(document) for document in yaml.safe_load_all(text)], default=str)
    except (ValueError, yaml.YAMLError):
        pass
    return text


def _without_descriptions(value: Any) -> Any:
    """A document without descriptions; a field of that name in a schema, whose value is a schema, is not one."""
    if isinstance(value, list):
        return [_without_descriptions(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _without_descriptions(item)
            for key, item in value.items()
            if not (key == "description" and isinstance(item, str))
        }
    return value
