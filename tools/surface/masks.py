"""What differs from run to run, and is replaced by the name of the rule that replaces it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rule:
    """A rule: the strings that a pattern matches, or the string values of some keys, are replaced by its name."""

    name: str
    pattern: str = ""
    keys: frozenset[str] = frozenset()

    @property
    def replacement(self) -> str:
        return f"({self.name})"


RULES = (
    Rule("uid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    Rule("time", r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    Rule("resource version", keys=frozenset({"resourceVersion"})),
    Rule("certificate", keys=frozenset({"caBundle"})),
    Rule("port", r"(?<=\b127\.0\.0\.1:)\d+"),
    Rule("host", r"(?<=\"address\": \")[^\"]+"),
    Rule("schema digest", r"(?<=hash=)[0-9A-Fa-f]+"),
    Rule("folder", r"/[^\s\"']*/surface-site-[^/\s\"']+"),
    Rule("Python", r"(?<=\(Python )[0-9.]+, \w+"),
)
"""`schema digest` is that of an OpenAPI document, which is compared itself."""


def masked(text: str) -> str:
    """A text with everything replaced that a rule's pattern matches."""
    for rule in RULES:
        if rule.pattern:
            text = re.sub(rule.pattern, rule.replacement, text)
    return text


def document(value: Any) -> str:
    """A JSON value as an indented text with sorted keys, masked. Lists keep their order, but for `managedFields`."""
    return masked(json.dumps(_masked_keys(value), indent=1, sort_keys=True, ensure_ascii=False)) + "\n"


def _masked_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, child in value.items():
        rule = next((rule for rule in RULES if key in rule.keys and isinstance(child, str)), None)
        found[key] = rule.replacement if rule else _masked_keys(child)
    if isinstance(found.get("managedFields"), list):
        # in the order of their times
        found["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    return found
