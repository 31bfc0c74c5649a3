"""fmt's Print family and Printf over template values.

Source: golang/go: src/fmt/print.go, src/fmt/format.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.codec.gotemplate.errors import TEXT_CHARS, CallError, check_chars
from ironbell.codec.gotemplate.golib.numbers import float_text, format_verb, integer_digits
from ironbell.codec.gotemplate.golib.quoting import can_backquote, is_print, quote, quote_rune
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.values import (
    ANY_TYPE,
    NIL,
    Opaque,
    Pointer,
    Struct,
    dereference,
    encode,
    is_uint,
    type_name,
)

ADDRESS = "0xc000000000"
"""Stands for any pointer's address, which differs from run to run in Go."""


def sprint_value(value: Any) -> str:
    """Return the text that `{{ value }}` writes."""
    if isinstance(value, Pointer):
        value = dereference(value)
    return "<no value>" if value is None else sprint_one(value)


def sprint_one(value: Any) -> str:
    """%v."""
    if isinstance(value, str):
        return value
    return Printer().arg(value, "v")


def sprint(values: tuple[Any, ...]) -> str:
    """Print: spaces only between operands neither of which is a string."""
    parts: list[str] = []
    previous_is_text = True
    for value in values:
        is_text = isinstance(value, str)
        if not is_text and not previous_is_text:
            parts.append(" ")
        parts.append(sprint_one(value))
        previous_is_text = is_text
    return "".join(parts)


def sprintln(values: tuple[Any, ...]) -> str:
    """Println: spaces between all operands, and a line break."""
    return " ".join(sprint_one(value) for value in values) + "\n"


@dataclass(slots=True)
class Flags:
    """A verb's flags; width and precision are None where not given."""

    sharp: bool = False
    zero: bool = False
    plus: bool = False
    minus: bool = False
    space: bool = False
    sharp_v: bool = False
    plus_v: bool = False
    width: int | None = None
    precision: int | None = None


class Printer:
    """Formats operands with one verb and its flags."""

    def __init__(self, flags: Flags | None = None) -> None:
        self.flags = flags or Flags()
        self._budget = TEXT_CHARS

    def arg(self, value: Any, verb: str) -> str:
        """One operand."""
        if value is None or value is NIL:
            return self.pad("<nil>") if verb in "Tv" else f"%!{verb}(<nil>)"
        if verb == "T":
            return self._text(type_name(value))
        if verb == "p":
            return ADDRESS if isinstance(value, Pointer | dict | list) else self._bad(value, verb)
        return self._value(value, verb, 0)

    def _bad(self, value: Any, verb: str) -> str:
        return f"%!{verb}({type_name(value)}={self._value(value, 'v', 0)})"

    def _value(self, value: Any, verb: str, depth: int) -> str:
        charge(1)
        match value:
            case bool():
                return self.pad("true" if value else "false") if verb in "tv" else self._bad(value, verb)
            case int():
                return self._integer(value, verb)
            case float():
                return self._float(value, verb)
            case str():
                return self._string(value, verb)
            case Opaque() if verb in "vsxXq":
                return self._string(str(value), verb)
        if verb == "w":
            return self._bad(value, verb)
        if depth > 200:
            raise CallError("nested too deeply to be printed")
        match value:
            case dict():
                return self._map(value, verb, depth)
            case list():
                return self._list(value, verb, depth)
            case Struct():
                return self._struct(value, verb, depth)
            case Pointer():
                return self._pointer(value, verb, depth)
        return self._bad(value, verb)

    def _element(self, value: Any, verb: str, depth: int, static: str) -> str:
        if value is None or value is NIL:
            text = f"{static}(nil)" if self.flags.sharp_v else "<nil>"
        else:
            text = self._value(value, verb, depth + 1)
        self._budget -= len(text) + 1
        if self._budget < 0:
            check_chars(TEXT_CHARS + 1)
        return text

    def _map(self, value: dict[str, Any], verb: str, depth: int) -> str:
        static = getattr(value, "elem", ANY_TYPE)
        if self.flags.sharp_v and getattr(value, "is_nil", False):
            return f"{type_name(value)}(nil)"
        pairs = [
            f"{self._string(key, verb)}:{self._element(value[key], verb, depth, static)}"
            for key in sorted(value, key=encode)
        ]
        return f"{type_name(value)}{{{', '.join(pairs)}}}" if self.flags.sharp_v else f"map[{' '.join(pairs)}]"

    def _list(self, value: list[Any], verb: str, depth: int) -> str:
        static = getattr(value, "elem", ANY_TYPE)
        if self.flags.sharp_v and getattr(value, "is_nil", False):
            return f"{type_name(value)}(nil)"
        items = [self._element(item, verb, depth, static) for item in value]
        return f"{type_name(value)}{{{', '.join(items)}}}" if self.flags.sharp_v else f"[{' '.join(items)}]"

    def _struct(self, value: Struct, verb: str, depth: int) -> str:
        named = self.flags.sharp_v or self.flags.plus_v
        items = [
            (f"{item.name}:" if named else "") + self._element(value.values[item.name], verb, depth, item.type)
            for item in value.type.fields
        ]
        return f"{value.type.name}{{{', '.join(items)}}}" if self.flags.sharp_v else f"{{{' '.join(items)}}}"

    def _pointer(self, value: Pointer, verb: str, depth: int) -> str:
        if value.target is None:
            if self.flags.sharp_v:
                return f"(*{value.elem})(nil)"
            return self.pad("<nil>") if verb == "v" else f"%!{verb}(*{value.elem}=<nil>)"
        if depth == 0 and isinstance(value.target, Struct | list | dict):
            return "&" + self._value(value.target, verb, depth + 1)
        return ADDRESS

    # Leaves

    def pad(self, text: str, *, zeros: bool | None = None) -> str:
        """To the width, on the left unless flagged otherwise; with zeros if flagged."""
        flags = self.flags
        if not flags.width or flags.width <= len(text):
            return text
        if flags.minus:
            return text.ljust(flags.width)
        return text.rjust(flags.width, "0" if (flags.zero if zeros is None else zeros) else " ")

    def _text(self, text: str) -> str:
        return self.pad(text if self.flags.precision is None else text[: self.flags.precision])

    def _string(self, text: str, verb: str) -> str:
        if verb == "s" or (verb == "v" and not self.flags.sharp_v):
            return self._text(text)
        if verb in "vq":
            cut = text if self.flags.precision is None else text[: self.flags.precision]
            if self.flags.sharp and can_backquote(cut):
                return self.pad(f"`{cut}`")
            return self.pad(quote(cut, ascii_only=self.flags.plus))
        if verb in "xX":
            return self._hexadecimal(text, verb)
        return self._bad(text, verb)

    def _hexadecimal(self, text: str, verb: str) -> str:
        flags = self.flags
        data = encode(text)
        if flags.precision is not None:
            data = data[: flags.precision]
        prefix = f"0{verb}" if flags.sharp else ""
        if flags.space:
            encoded = " ".join(prefix + format(byte, f"02{verb}") for byte in data)
        else:
            encoded = (prefix if data else "") + (data.hex() if verb == "x" else data.hex().upper())
        return self.pad(encoded)

    def _integer(self, value: int, verb: str) -> str:
        if verb == "c":
            return self.pad(chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value < 0xE000 else "\ufffd")
        if verb == "q":
            return self.pad(quote_rune(value, ascii_only=self.flags.plus))
        if verb == "U":
            return self._unicode(value)
        if verb not in "vdboOxX":
            return self._bad(value, verb)
        if verb == "v" and self.flags.sharp_v and is_uint(value):
            return self._digits(value, "x", sharp=True)
        return self._digits(value, verb, sharp=self.flags.sharp)

    def _digits(self, value: int, verb: str, *, sharp: bool) -> str:
        flags = self.flags
        sign = "-" if value < 0 else "+" if flags.plus else " " if flags.space else ""
        minimum = 0
        if flags.precision is not None:
            minimum = flags.precision
            if minimum == 0 and value == 0:
                return " " * (flags.width or 0)
        elif flags.zero and not flags.minus and flags.width is not None:
            minimum = flags.width - len(sign)
        digits = integer_digits(abs(value), verb).rjust(minimum, "0")
        if sharp and verb in "boOxX":
            prefix = {"b": "0b", "x": "0x", "X": "0X"}.get(verb, "" if digits.startswith("0") else "0")
            digits = prefix + digits
        if verb == "O":
            digits = "0o" + digits
        return self.pad(sign + digits, zeros=False)

    def _unicode(self, value: int) -> str:
        width = max(4, self.flags.precision or 0)
        code = value & ((1 << 64) - 1)
        text = f"U+{code:0{width}X}"
        if self.flags.sharp and 0 <= value <= 0x10FFFF and is_print(chr(value)):
            text += f" '{chr(value)}'"
        return self.pad(text, zeros=False)

    def _float(self, value: float, verb: str) -> str:
        flags = self.flags
        default = {"v": -1, "g": -1, "G": -1, "b": -1, "x": -1, "X": -1, "e": 6, "E": 6, "f": 6, "F": 6}.get(verb)
        if default is None:
            return self._bad(value, verb)
        if verb == "v" and flags == Flags():
            return float_text(value)
        precision = default if flags.precision is None else flags.precision
        text = format_verb(value, {"v": "g", "F": "f"}.get(verb, verb), precision)
        if text[0] not in "+-":
            text = "+" + text
        if flags.space and text[0] == "+" and not flags.plus:
            text = " " + text[1:]
        if text[1] in "IN":
            if text[1] == "N" and not flags.space and not flags.plus:
                text = text[1:]
            return self.pad(text, zeros=False)
        if flags.sharp and verb != "b":
            text = _with_point(text, verb, precision)
        if flags.plus or text[0] != "+":
            if flags.zero and not flags.minus and flags.width and flags.width > len(text):
                return text[0] + text[1:].rjust(flags.width - 1, "0")
            return self.pad(text)
        return self.pad(text[1:])


def _with_point(text: str, verb: str, precision: int) -> str:
    """The # flag: a decimal point always, and for %g its trailing zeros."""
    minimum = (6 if precision == -1 else precision) if verb in "vgGx" else 0
    body, tail = text, ""
    for index, char in enumerate(text):
        if char in "pP" or (char in "eE" and verb not in "xX"):
            body, tail = text[:index], text[index:]
            break
    digits = body[1:].replace(".", "")
    significant = len(digits.lstrip("0"))
    if "." not in body:
        if body[1:] == "0":
            significant = 1
        body += "."
    return body + "0" * max(0, minimum - significant) + tail


__all__ = ["ADDRESS", "Flags", "Printer", "sprint", "sprint_one", "sprint_value", "sprintln"]
