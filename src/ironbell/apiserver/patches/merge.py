"""JSON merge patch.

Source: RFC 7386, section 2.
"""

from __future__ import annotations

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """The target with the patch applied; `target` may be changed and become part of the result."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            target[name] = merge(target.get(name), value)
        else:
            target[name] = value
    return target
