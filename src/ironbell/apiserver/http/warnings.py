"""Warnings to the client, in the `Warning` header.

Source: RFC 7234 section 5.5; kubernetes/apiserver: pkg/warning.
"""

from __future__ import annotations

import msgspec

from ironbell.api.client import WriteOptions
from ironbell.apiserver.resources import ResourceInfo

_MOST = 20


def warnings(info: ResourceInfo, body: bytes, options: WriteOptions, *, creates: bool = False) -> dict[str, str]:
    """Headers for what was accepted but should be known.

    That is a deprecated version, unknown fields when asked for, and on creation that nothing acts on the kind. `body`
    was accepted already, so it decodes to an object.
    """
    found = [info.deprecation_warning] if info.deprecation_warning else []
    if creates and info.creation_warning:
        found.append(info.creation_warning)
    if options.field_validation == "Warn":
        found += [f'unknown field "{path}"' for path in info.compiled.prune(msgspec.json.decode(body))]
    if not found:
        return {}
    return {"Warning": ", ".join(f"299 - {_quoted(text)}" for text in found[:_MOST])}


def _quoted(text: str) -> str:
    printable = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
