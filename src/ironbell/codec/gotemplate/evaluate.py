"""Executes syntax trees with data, as text/template does with `missingkey=error` or without that option.

Source: golang/go: src/text/template/exec.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from ironbell.codec.gotemplate import nodes as n
from ironbell.codec.gotemplate.errors import DEPTH, OUTPUT_BYTES, CallError, check_chars, check_items
from ironbell.codec.gotemplate.fields import field_of, missing_in_nil
from ironbell.codec.gotemplate.functions import Function, P, assign, constant, ideal
from ironbell.codec.gotemplate.golib.printing import sprint_value
from ironbell.codec.gotemplate.meter import LimitExceeded, charge
from ironbell.codec.gotemplate.values import NIL, dereference, elements, encode, is_int, is_true, is_uint, type_name


class _Jump(Enum):
    BREAK = auto()
    CONTINUE = auto()


class _NoFinal(Enum):
    MISSING = auto()


_MISSING: Final = _NoFinal.MISSING


class Fault(Exception):  # noqa: N818 - internal, turned into TemplateError
    """Cause of a failure, and its place in the text; `is_limit` if the template exceeded a limit."""

    def __init__(self, problem: str, pos: int, *, is_limit: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.pos = pos
        self.is_limit = is_limit


class Evaluator:
    """One execution. Variables are a stack of pairs, as blocks take theirs away when they end."""

    def __init__(
        self,
        defined: Mapping[str, list[n.Node]],
        functions: Mapping[str, Function],
        *,
        output_cap: int = OUTPUT_BYTES,
        missing_is_error: bool = True,
    ) -> None:
        self._defined = defined
        self._missing_is_error = missing_is_error
        self._functions = functions
        self._cap = output_cap
        self._size = 0
        self._out: list[str] = []
        self._depth = 0
        self._pos = 0
        self._vars: list[tuple[str, Any]] = []

    def run(self, name: str, data: Any) -> str:
        """The output.

        Raises:
            Fault: the template cannot be executed with this data, or needs more than it may.
        """
        self._vars = [("$", data)]
        try:
            self._walk_all(self._defined[name], data)
        except CallError as error:
            raise Fault(str(error), self._pos, is_limit=isinstance(error, LimitExceeded)) from None
        except RecursionError:
            raise Fault("nested too deeply", self._pos) from None
        return "".join(self._out)

    def _at(self, pos: int) -> None:
        self._pos = pos
        charge(1)

    def _write(self, text: str) -> None:
        self._size += len(encode(text))
        if self._size > self._cap:
            raise CallError(f"rendered template exceeds {self._cap} bytes")
        self._out.append(text)

    # Nodes

    def _walk_all(self, body: list[n.Node], dot: Any) -> _Jump | None:
        for node in body:
            jump = self._walk(node, dot)
            if jump is not None:
                return jump
        return None

    def _walk(self, node: n.Node, dot: Any) -> _Jump | None:
        self._at(node.pos)
        match node:
            case n.Text():
                self._write(node.text)
            case n.Action():
                value = self._pipeline(node.pipe, dot)
                if not node.pipe.declared:
                    self._at(node.pos)
                    self._write(sprint_value(value))
            case n.If() | n.With():
                return self._branch(node, dot)
            case n.Range():
                return self._range(node, dot)
            case n.Call():
                self._template(node, dot)
            case n.Break():
                return _Jump.BREAK
            case n.Continue():
                return _Jump.CONTINUE
        return None

    def _branch(self, node: n.If | n.With, dot: Any) -> _Jump | None:
        mark = len(self._vars)
        try:
            value = self._pipeline(node.pipe, dot)
            if is_true(value):
                return self._walk_all(node.body, value if isinstance(node, n.With) else dot)
            return self._walk_all(node.otherwise, dot) if node.otherwise is not None else None
        finally:
            del self._vars[mark:]

    def _range(self, node: n.Range, dot: Any) -> _Jump | None:
        outer = len(self._vars)
        try:
            value = dereference(self._pipeline(node.pipe, dot))
            self._at(node.pipe.pos)
            pairs = self._pairs(value, with_index=len(node.pipe.declared) > 1)
            if not pairs:
                return self._walk_all(node.otherwise, dot) if node.otherwise is not None else None
            charge(len(pairs))
            mark = len(self._vars)
            for index, element in pairs:
                self._bind(node.pipe, index, element)
                jump = self._walk_all(node.body, element)
                del self._vars[mark:]
                if jump is _Jump.BREAK:
                    break
            return None
        finally:
            del self._vars[outer:]

    def _pairs(self, value: Any, *, with_index: bool) -> list[tuple[Any, Any]]:
        if value is None or value is NIL:
            return []
        if is_int(value) or is_uint(value):
            if with_index:
                raise CallError("can't use a number to iterate over more than one variable")
            check_items(value)
            return [(None, type(value)(item)) for item in range(value)]
        if isinstance(value, list):
            return list(enumerate(elements(value)))
        if isinstance(value, dict):
            return [(key, NIL if value[key] is None else value[key]) for key in sorted(value)]
        raise CallError(f"range can't iterate over a {type_name(value)}")

    def _bind(self, pipe: n.Pipeline, index: Any, element: Any) -> None:
        if not pipe.declared:
            return
        first, second = (element, None) if len(pipe.declared) == 1 else (index, element)
        if pipe.assigns:
            self._set(pipe.declared[0], first)
            if len(pipe.declared) > 1:
                self._set(pipe.declared[1], second)
            return
        top = len(self._vars)
        values = (first, second)[: len(pipe.declared)]
        for offset, (name, value) in enumerate(zip(pipe.declared, values, strict=True)):
            self._vars[top - len(values) + offset] = (name, value)

    def _template(self, node: n.Call, dot: Any) -> None:
        body = self._defined.get(node.name)
        if body is None:
            raise CallError(f'template "{node.name}" not defined')
        if self._depth >= DEPTH:
            raise CallError(f"exceeded maximum template depth ({DEPTH})")
        value = self._pipeline(node.pipe, dot) if node.pipe is not None else None
        saved, self._vars = self._vars, [("$", value)]
        self._depth += 1
        self._walk_all(body, value)
        self._depth -= 1
        self._vars = saved

    # Variables

    def _set(self, name: str, value: Any) -> None:
        for index in range(len(self._vars) - 1, -1, -1):
            if self._vars[index][0] == name:
                self._vars[index] = (name, value)
                return
        raise CallError(f"undefined variable: {name}")

    def _variable(self, name: str) -> Any:
        for known, value in reversed(self._vars):
            if known == name:
                return value
        raise CallError(f"undefined variable: {name}")

    # Expressions

    def _pipeline(self, pipe: n.Pipeline, dot: Any) -> Any:
        self._at(pipe.pos)
        value: Any = _MISSING
        for command in pipe.commands:
            value = self._command(command, dot, value)
            if value is NIL:
                value = None
        for name in pipe.declared:
            if pipe.assigns:
                self._set(name, value)
            else:
                self._vars.append((name, value))
        return value

    def _command(self, command: n.Command, dot: Any, final: Any) -> Any:
        first, args = command.args[0], command.args[1:]
        self._at(first.pos)
        match first:
            case n.FieldPath():
                return self._fields(dot, first.names, args, final, dot)
            case n.Chain():
                return self._chain(first, dot, args, final)
            case n.Identifier():
                return self._function(first, args, final, dot)
            case n.Variable() if first.names:
                return self._fields(self._variable(first.name), first.names, args, final, dot)
        if args or final is not _MISSING:
            raise CallError("can't give argument to a non-function")
        match first:
            case n.Pipeline():
                return self._pipeline(first, dot)
            case n.Variable():
                return self._variable(first.name)
            case n.Dot():
                return dot
            case n.Bool() | n.Str():
                return first.value
            case n.Num():
                return ideal(first)
        raise CallError("nil is not a command")

    def _chain(self, chain: n.Chain, dot: Any, args: list[n.Arg], final: Any) -> Any:
        if isinstance(chain.operand, n.Nil):
            raise CallError("indirection through explicit nil")
        value = self._argument(chain.operand, P.VALUE, dot)
        self._at(chain.pos)
        return self._fields(value, chain.names, args, final, dot)

    def _fields(self, receiver: Any, names: list[str], args: list[n.Arg], final: Any, dot: Any) -> Any:
        for name in names[:-1]:
            receiver = self._field(receiver, name, [], _MISSING, dot)
        return self._field(receiver, names[-1], args, final, dot)

    def _field(self, receiver: Any, name: str, args: list[n.Arg], final: Any, dot: Any) -> Any:
        pos = self._pos
        if receiver is None and not self._missing_is_error:
            return None
        if receiver is None or receiver is NIL:
            raise CallError(missing_in_nil(receiver, name))
        value = field_of(receiver, name, missing_is_error=self._missing_is_error)
        if isinstance(value, Function):
            return self._call(value, args, final, dot)
        if args or final is not _MISSING:
            self._pos = pos
            raise CallError(f"{name} has arguments but is not a function")
        return value

    def _function(self, node: n.Identifier, args: list[n.Arg], final: Any, dot: Any) -> Any:
        return self._call(self._functions[node.name], args, final, dot)

    def _call(self, function: Function, args: list[n.Arg], final: Any, dot: Any) -> Any:
        pos, name = self._pos, function.name
        count = len(args) + (final is not _MISSING)
        fixed = len(function.params)
        if count < fixed or (count > fixed and function.rest is None):
            expected = f"at least {fixed}" if function.rest is not None else str(fixed)
            raise CallError(f"wrong number of args for {name}: want {expected} got {count}")
        params = [*function.params, *[function.rest or P.ANY] * (count - fixed)]
        if name in ("and", "or") and function.call is _lazy:
            return self._and_or(name, args, final, dot)
        values = [self._argument(arg, param, dot) for arg, param in zip(args, params, strict=False)]
        self._at(pos)
        if final is not _MISSING:
            values.append(assign(final, params[-1]))
        try:
            charge(function.cost + function.factor * sum(map(_weight, values)))
            result = function.call(*values)
            charge(_weight(result))
        except LimitExceeded as error:
            self._pos = pos
            raise LimitExceeded(f"in {name}: {error}") from None
        except CallError as error:
            self._pos = pos
            raise CallError(f"error calling {name}: {error}") from None
        if isinstance(result, str):
            check_chars(len(result))
        elif isinstance(result, list | dict):
            check_items(len(result))
        return result

    def _and_or(self, name: str, args: list[n.Arg], final: Any, dot: Any) -> Any:
        value: Any = None
        for arg in args:
            value = self._argument(arg, P.VALUE, dot)
            if is_true(value) == (name == "or"):
                return value
        return value if final is _MISSING else final

    def _argument(self, node: n.Arg, param: P, dot: Any) -> Any:
        self._at(node.pos)
        match node:
            case n.Nil():
                if param in (P.ANY, P.VALUE, P.MAP, P.LIST):
                    return assign(None, param)
                raise CallError(f"cannot assign nil to {param.value}")
            case n.Bool() | n.Str() | n.Num():
                return constant(node, param)
            case n.Dot():
                value = dot
            case n.FieldPath():
                value = self._fields(dot, node.names, [], _MISSING, dot)
            case n.Variable():
                value = self._variable(node.name)
                if node.names:
                    value = self._fields(value, node.names, [], _MISSING, dot)
            case n.Pipeline():
                value = self._pipeline(node, dot)
            case n.Identifier():
                value = self._function(node, [], _MISSING, dot)
            case n.Chain():
                value = self._chain(node, dot, [], _MISSING)
        return assign(value, param)


def _weight(value: Any) -> int:
    """Return the cost of handling a value, in steps."""
    if isinstance(value, str):
        return len(value) >> 3
    return len(value) >> 3 if isinstance(value, list | dict) else 0


def _lazy(*_: Any) -> Any:
    """Stands for `and` and `or`, which evaluate their arguments themselves."""
    raise AssertionError("evaluated by the evaluator")


AND_OR: Final = _lazy
