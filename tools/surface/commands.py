"""The commands with their options: names, and the texts of `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from surface.checkout import Checkout
from surface.pool import in_parallel

_COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)(?:  |$)")
_OPTION = re.compile(r"^  (-.+?)(?:  |$)")


def commands(checkout: Checkout) -> dict[str, str]:
    """The file `help/COMMAND.txt` of each command, and `options/all.txt` with the names of all commands and options."""
    helps = dict(_walk(checkout))
    lines = [line for words, text in helps.items() for line in named(" ".join(("ironbell", *words)), text)]
    files = {f"help/{'-'.join(('ironbell', *words))}.txt": text for words, text in helps.items()}
    completions = {
        f"help/completion-{shell}.txt": checkout.printed("completion", shell) for shell in ("bash", "zsh", "fish")
    }
    return files | completions | {"options/all.txt": "".join(f"{line}\n" for line in sorted(lines))}


def _walk(checkout: Checkout) -> Iterator[tuple[tuple[str, ...], str]]:
    level: list[tuple[str, ...]] = [()]
    while level:
        texts = in_parallel(level, lambda words: checkout.printed(*words, "--help"))
        yield from zip(level, texts, strict=True)
        level = [(*words, name) for words, text in zip(level, texts, strict=True) for name in subcommands(text)]


def subcommands(text: str) -> list[str]:
    """The names below `Commands:` in a help text."""
    return [match[1] for line in _section(text, "Commands:") if (match := _COMMAND.match(line))]


def named(command: str, text: str) -> Iterator[str]:
    """The usage of a command and a line for each of its options, as its help text has them."""
    usage = re.search(r"^Usage: (.*(?:\n {2,}.*)*)", text, re.MULTILINE)
    yield f"{command}: {' '.join(usage[1].split()) if usage else 'no usage'}"
    for line in _section(text, "Options:"):
        if match := _OPTION.match(line):
            yield f"{command}: {match[1]}"


def _section(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    if title not in lines:
        return []
    below = lines[lines.index(title) + 1 :]
    return below[: below.index("")] if "" in below else below
