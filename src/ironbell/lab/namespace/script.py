"""Reads a served iPXE script far enough to know what it boots. Pure.

Understands `set`, `kernel`, `initrd`, `chain`, `boot`, `sanboot` and `exit`, with `${name}` of what was set. Lines
are taken as if every command succeeded, which is the way through a script that ends in a boot.

Source: ipxe.org/scripting, ipxe.org/cmd.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SETTING = re.compile(r"\$\{([^}]+)\}")
_CHAINED = re.compile(r"\s*(?:&&|\|\|).*$")


@dataclass(frozen=True, slots=True)
class InMemory:
    """A kernel with its initramfs and arguments."""

    kernel: str
    initrd: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Disk:
    """The script leaves the boot to the disk."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Another script continues."""

    url: str


Outcome = InMemory | Disk | Chain


def outcome(script: str, settings: dict[str, str]) -> Outcome:
    """The result of a script. `settings` are the machine's own, such as `mac`.

    Raises:
        ValueError: the text is not a script, or it ends without booting anything.
    """
    if not script.startswith("#!ipxe"):
        raise ValueError(f"the served file is not an iPXE script: {script[:40]!r}")
    known = dict(settings)
    kernel = arguments = initrd = ""
    for raw in script.splitlines()[1:]:
        line = _CHAINED.sub("", raw.strip())
        line = _SETTING.sub(lambda match: known.get(match[1].partition(":")[0], ""), line)
        command, _, rest = line.partition(" ")
        words = [word for word in rest.split() if not word.startswith("--")]
        if command == "set" and len(words) > 1:
            known[words[0].partition(":")[0]] = " ".join(words[1:])
        elif command == "kernel" and words:
            kernel, arguments = words[0], " ".join(rest.split()[rest.split().index(words[0]) + 1 :])
        elif command == "initrd" and words:
            initrd = words[0]
        elif command == "chain" and words:
            return Chain(words[0])
        elif command == "boot" and kernel:
            return InMemory(kernel, initrd, arguments)
        elif command in {"sanboot", "exit"} and not kernel:
            return Disk()
    raise ValueError("the iPXE script ends without booting anything")
