"""Printf: verbs in a format to text.

Source: golang/go: src/fmt/print.go (doPrintf).
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import check_chars
from ironbell.codec.gotemplate.golib.printing import Flags, Printer
from ironbell.codec.gotemplate.values import is_int, is_uint, type_name

_LARGEST = 1_000_000


def sprintf(template: str, args: tuple[Any, ...]) -> str:
    """Go's Sprintf: what is wrong with the format shows in the text, and never fails."""
    return _Formatter(template, args).run()


class _Formatter:
    def __init__(self, template: str, args: tuple[Any, ...]) -> None:
        self._template = template
        self._args = args
        self._pos = 0
        self._arg = 0
        self._reordered = False
        self._good = True
        self._size = 0

    def run(self) -> str:
        parts: list[str] = []
        template = self._template
        while self._pos < len(template):
            percent = template.find("%", self._pos)
            end = percent if percent >= 0 else len(template)
            parts.append(template[self._pos : end])
            self._pos = end
            if percent < 0:
                break
            self._pos += 1
            parts.append(self._verb())
            self._size += len(parts[-1])
            check_chars(self._size)
        if not self._reordered and self._arg < len(self._args):
            parts.append(f"%!(EXTRA {', '.join(_described(arg) for arg in self._args[self._arg :])})")
        return "".join(parts)

    def _char(self) -> str:
        return self._template[self._pos : self._pos + 1]

    def _verb(self) -> str:
        self._good = True
        flags = Flags()
        names = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}
        while (char := self._char()) in names and char:
            setattr(flags, names[char], True)
            self._pos += 1
        if "a" <= char <= "z" and char and self._arg < len(self._args):
            self._pos += 1
            return self._print(flags, char)
        complaints = self._width_and_precision(flags)
        verb = self._char()
        if not verb:
            return complaints + "%!(NOVERB)"
        self._pos += 1
        if verb == "%":
            return complaints + "%"
        if not self._good:
            return f"{complaints}%!{verb}(BADINDEX)"
        if self._arg >= len(self._args):
            return f"{complaints}%!{verb}(MISSING)"
        return complaints + self._print(flags, verb)

    def _width_and_precision(self, flags: Flags) -> str:
        complaints = ""
        indexed = self._index()
        if self._char() == "*":
            self._pos += 1
            flags.width = self._int_arg()
            if flags.width is None:
                complaints += "%!(BADWIDTH)"
            elif flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
            indexed = False
        else:
            flags.width = self._digits()
            self._good &= not (indexed and flags.width is not None)
        if self._char() == "." and self._pos + 1 < len(self._template):
            self._pos += 1
            self._good &= not indexed
            indexed = self._index()
            if self._char() == "*":
                self._pos += 1
                flags.precision = self._int_arg()
                if flags.precision is None or flags.precision < 0:
                    flags.precision = None
                    complaints += "%!(BADPREC)"
                indexed = False
            else:
                flags.precision = self._digits() or 0
        if not indexed:
            self._index()
        return complaints

    def _digits(self) -> int | None:
        start = self._pos
        while "0" <= self._char() <= "9" and self._char():
            self._pos += 1
        digits = self._template[start : self._pos]
        if not digits:
            return None
        if len(digits) > 7 or int(digits) // 10 > _LARGEST:
            self._pos = len(self._template)
            return None
        return int(digits)

    def _index(self) -> bool:
        """An argument's index such as [2]; whether there was one."""
        if self._char() != "[":
            return False
        self._reordered = True
        closing = self._template.find("]", self._pos)
        if closing < 0:
            self._good = False
            self._pos += 1
            return False
        text = self._template[self._pos + 1 : closing]
        self._pos = closing + 1
        if text.isascii() and text.isdigit() and len(text) < 8 and 1 <= int(text) <= len(self._args):
            self._arg = int(text) - 1
            return True
        self._good = False
        return text.isascii() and text.isdigit()

    def _int_arg(self) -> int | None:
        if self._arg >= len(self._args):
            return None
        value = self._args[self._arg]
        self._arg += 1
        if (is_int(value) or is_uint(value)) and abs(value) <= _LARGEST:
            return int(value)
        return None

    def _print(self, flags: Flags, verb: str) -> str:
        value = self._args[self._arg]
        self._arg += 1
        if verb in ("v", "w"):
            flags.sharp_v, flags.plus_v = flags.sharp, flags.plus
            flags.sharp = flags.plus = False
        return Printer(flags).arg(value, verb)


def _described(value: Any) -> str:
    return "<nil>" if value is None else f"{type_name(value)}={Printer().arg(value, 'v')}"
