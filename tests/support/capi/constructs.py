"""Which constructs a text uses that is code: of the language that it is in, of the shell, and of Go's templates.

Names, paths, options and wording are no constructs: two texts that do different things can use the same ones.
"""

from __future__ import annotations

import re
from itertools import pairwise

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:\\.|[^"\\])*"|\$\w*|[.\w\\]*\w|:=|[|()\[\],]')
_KEYWORDS = {"if", "else", "end", "range", "with", "template", "define", "block", "break", "continue"}
_FIRST_LINES = {"#cloud-config": "cloud-config", "#!ipxe": "iPXE script"}
_SHELL = {
    "and": r"&&",
    "or": r"\|\|",
    "pipe": r"[^|]\|[^|]",
    "to a file": r"(?<![>&\d-])>(?![>&(])",
    "appended to a file": r">>",
    "of an error": r"2>",
    "from a file": r"(?<!<)<(?![<(])\s*\S",
    "here document": r"<<-?\s*['\"]?[A-Z]",
    "here string": r"<<<",
    "of a process": r"<\(",
    "command's output": r"\$\((?!\()",
    "old command's output": r"`[^`]+`",
    "arithmetic": r"\$?\(\(",
    "variable": r"\$\w",
    "variable in braces": r"\$\{\w+\}",
    "default of a variable": r"\$\{\w+:?[-=]",
    "part of a variable": r"\$\{\w+[%#/]",
    "array": r"\$\{?\w+\[",
    "all arguments": r"\$[@*]",
    "test": r"(?:^|\s)\[\s",
    "bash's test": r"\[\[",
    "if": r"(?m)^\s*if\b",
    "elif": r"(?m)^\s*elif\b",
    "else": r"(?m)^\s*else\b",
    "for": r"\bfor \w+ in\b",
    "while": r"(?m)^\s*while\b",
    "until": r"(?m)^\s*until\b",
    "case": r"(?m)^\s*case\b",
    "not": r"(?:if|while|until) !",
    "function": r"(?m)^\s*(?:function \w+|\w+\s*\(\)\s*\{)",
    "local": r"(?m)^\s*local\b",
    "continued line": r"\\\n",
    "options of the shell": r"(?m)^set -",
    "comment": r"(?m)^\s*#(?!!)",
}


def constructs(text: str) -> set[str]:
    """What the text uses, in words for a message of a test."""
    rest = _ACTION.sub("x", text)
    language = _language(rest)
    found = {f"{language}"} | {name for action in _ACTION.finditer(text) for name in _of_action(*action.groups())}
    if language in {"shell", "bash"}:
        found |= {f"shell: {name}" for name, pattern in _SHELL.items() if re.search(pattern, rest)}
    return found


def _language(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    if first in _FIRST_LINES:
        return _FIRST_LINES[first]
    if first.startswith("#!"):
        return "bash" if first.endswith("bash") else "shell"
    if re.search(r"^\[\w+\]$", text, re.MULTILINE):
        return "sections"
    if re.match(r"[\w.-]+\s*=", first):
        return "settings"
    if re.match(r"(- )?[\w.-]+:(\s|$)", first):
        return "YAML"
    return "shell"


def _of_action(left: str, body: str, right: str) -> set[str]:
    found = {f"template: {side} trimmed" for side, trim in (("left", left), ("right", right)) if trim}
    if body.startswith("/*"):
        return found | {"template: comment"}
    words = _WORD.findall(body)
    for word in words:
        if word.startswith('"'):
            found.add("template: text")
        elif word.startswith("$"):
            found.add("template: variable")
        elif word.startswith("."):
            found.add("template: field" if word.count(".") == 1 else "template: field of a field")
        elif word[0].isdigit():
            found.add("template: number")
        else:
            found.add(f"template: {word}")
    for first, second in pairwise(words):
        if first in _KEYWORDS and second in _KEYWORDS:
            found.add(f"template: {first} {second}")
    if body.startswith("."):
        found.add("template: value")
    return found | ({"template: the value itself"} if body == "." else set())
