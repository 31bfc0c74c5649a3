"""Text and data to text.

Parsing and executing are one call: templates are small, rendered once per workflow, and a cache would keep their
text alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.errors import OUTPUT_BYTES, SECONDS, STEPS, LimitError, SyntaxFault, TemplateError
from ironbell.codec.gotemplate.evaluate import Evaluator, Fault
from ironbell.codec.gotemplate.functions import Function
from ironbell.codec.gotemplate.meter import LimitExceeded, metered
from ironbell.codec.gotemplate.parser import Parsed, parse
from ironbell.codec.gotemplate.sprig import SPRIG

FUNCTIONS: Mapping[str, Function] = {**BUILTINS, **SPRIG}
"""Go's builtins, sprig's hermetic set, and Tinkerbell's four. Sprig's `slice` hides the builtin one."""

_EXCERPT = 120
_NAME = "workflow-template"


def render(
    text: str,
    data: Any,
    *,
    functions: Mapping[str, Function] = FUNCTIONS,
    output_cap: int = OUTPUT_BYTES,
    missing_is_error: bool = True,
    steps: int = STEPS,
    seconds: float = SECONDS,
) -> str:
    """Execute a Go text/template, with `missingkey=error` or (`missing_is_error` false) without that option.

    `data` is a Go value as `values` describes them. Bytes that are no UTF-8 come out as lone surrogates. `steps` and
    `seconds` (of processor time) bound parsing and executing together; see `meter`.

    Raises:
        TemplateError: the text does not parse, or does not execute with this data.
        LimitError: it exceeds a bound of what it may take.
    """
    try:
        with metered(steps, seconds):
            parsed = _parsed(text, functions)
            evaluator = Evaluator(parsed.defined, functions, output_cap=output_cap, missing_is_error=missing_is_error)
            return evaluator.run(_NAME, data)
    except Fault as fault:
        line = text.count("\n", 0, fault.pos) + 1
        start = text.rfind("\n", 0, fault.pos) + 1
        column = len(text[start : fault.pos].encode("utf-8", "surrogateescape"))
        kind = LimitError if fault.is_limit else TemplateError
        raise kind(fault.problem, line=line, column=column, excerpt=_line(text, line)) from None


def check(
    text: str, *, functions: Mapping[str, Function] = FUNCTIONS, steps: int = STEPS, seconds: float = SECONDS
) -> None:
    """Parse without executing.

    Raises:
        TemplateError: the text does not parse.
        LimitError: parsing takes more than it may.
    """
    with metered(steps, seconds):
        _parsed(text, functions)


def _parsed(text: str, functions: Mapping[str, Function]) -> Parsed:
    try:
        return parse(text, name=_NAME, functions=functions)
    except SyntaxFault as fault:
        raise TemplateError(fault.problem, line=fault.line, excerpt=_line(text, fault.line)) from None
    except LimitExceeded as fault:
        raise LimitError(str(fault), line=1, excerpt=_line(text, 1)) from None
    except RecursionError:
        raise TemplateError("nested too deeply", line=1, excerpt=_line(text, 1)) from None


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    line = lines[min(number, len(lines)) - 1].strip()
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1] + "…"
