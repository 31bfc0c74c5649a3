"""The default entry of a GRUB configuration: kernel, initial RAM disks, command line.

Only what distributions generate is understood: `set default=`, `menuentry` (also inside `submenu`), `linux*`,
`initrd*`; variables are left unchanged. Entries without a kernel are ignored.

Source: GNU GRUB manual, sections 6.1 and 16; tinkerbell/actions: kexec.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

_LINUX = {"linux", "linux16", "linuxefi"}
_INITRD = {"initrd", "initrd16", "initrdefi"}
_DEFAULT = re.compile(r"^\s*set\s+default=(?P<value>.*)$")


@dataclass
class Entry:
    """One entry of the menu."""

    title: str
    kernel: str = ""
    initrds: list[str] = field(default_factory=list)
    arguments: str = ""
    id: str = ""


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def parse(text: str) -> tuple[str, list[Entry]]:
    """The value of `default` (empty where it depends on saved state) and all entries that have a kernel."""
    default = ""
    entries: list[Entry] = []
    current: Entry | None = None
    for line in text.splitlines():
        if (match := _DEFAULT.match(line)) is not None:
            value = match["value"].strip().strip("\"'")
            default = default or ("" if "$" in value else value)
        words = _words(line)
        if not words:
            continue
        if words[0] == "menuentry" and len(words) > 1:
            current = Entry(title=words[1], id=_identifier(words))
            entries.append(current)
        elif words[0] == "}":
            current = None
        elif current is not None and words[0] in _LINUX and len(words) > 1:
            current.kernel = words[1]
            current.arguments = " ".join(words[2:])
        elif current is not None and words[0] in _INITRD:
            current.initrds += words[1:]
    return default, [entry for entry in entries if entry.kernel]


def _identifier(words: list[str]) -> str:
    for option in ("--id", "$menuentry_id_option"):
        if option in words[:-1]:
            return words[words.index(option) + 1]
    return ""


def default_entry(text: str) -> Entry | None:
    """The entry that GRUB would boot: by number, title or id; the first if the default is not an entry."""
    default, entries = parse(text)
    if not entries:
        return None
    selected = default.split(">")[-1]
    if selected.isdecimal():
        return entries[int(selected)] if int(selected) < len(entries) else entries[0]
    for entry in entries:
        if selected and selected in {entry.title, entry.id}:
            return entry
    return entries[0]
