"""Tokens to syntax trees.

Source: golang/go: src/text/template/parse/parse.go.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import NoReturn

from ironbell.codec.gotemplate import nodes as n
from ironbell.codec.gotemplate.errors import DEPTH, SyntaxFault
from ironbell.codec.gotemplate.lexer import T, Token, tokens
from ironbell.codec.gotemplate.literals import number, unquote

_TERMS = frozenset(
    (T.BOOL, T.DOT, T.FIELD, T.IDENTIFIER, T.NUMBER, T.NIL, T.STRING, T.VARIABLE, T.OPEN)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parsed:
    """The body of the template itself and of those that it defines."""

    body: list[n.Node]
    defined: dict[str, list[n.Node]]


def parse(text: str, *, name: str, functions: Container[str]) -> Parsed:
    """A template's trees.

    Raises:
        SyntaxFault: the text is not a template, or names a function or variable that does not exist.
    """
    parser = _Parser(text, name, functions)
    body = parser.top_level()
    defined = dict(parser.defined)
    if name in defined and _is_blank(body):
        body = defined[name]
    return Parsed(body, {**defined, name: body})


class _Parser:
    def __init__(self, text: str, name: str, functions: Container[str]) -> None:
        self._tokens = tokens(text)
        self._name = name
        self._functions = functions
        self._ahead: list[Token] = []
        self._last = Token(T.EOF, "", 0, 1)
        self._variables = ["$"]
        self._range_depth = 0
        self._depth = 0
        self.defined: dict[str, list[n.Node]] = {}

    # Tokens

    def _next(self) -> Token:
        token = self._ahead.pop() if self._ahead else next(self._tokens)
        if token.kind is T.EOF:
            self._ahead.append(token)
        self._last = token
        return token

    def _back(self, *read: Token) -> None:
        """Put tokens back, given in the order in which they were read."""
        self._ahead.extend(reversed([token for token in read if token.kind is not T.EOF]))

    def _peek(self) -> Token:
        token = self._next()
        self._back(token)
        return token

    def _next_word(self) -> Token:
        token = self._next()
        return self._next() if token.kind is T.SPACE else token

    def _peek_word(self) -> Token:
        token = self._next_word()
        self._back(token)
        return token

    def _fail(self, problem: str) -> NoReturn:
        raise SyntaxFault(problem, self._last.line)

    def _unexpected(self, token: Token, context: str) -> NoReturn:
        shown = "EOF" if token.kind is T.EOF else f'"{token.text[:20]}"'
        raise SyntaxFault(f"unexpected {shown} in {context}", token.line)

    def _expect(self, kind: T, context: str) -> Token:
        token = self._next_word()
        if token.kind is not kind:
            self._unexpected(token, context)
        return token

    # Structure

    def top_level(self) -> list[n.Node]:
        body: list[n.Node] = []
        while (token := self._next()).kind is not T.EOF:
            if token.kind is T.LEFT:
                word = self._next_word()
                if word.kind is T.KEYWORD and word.text == "define":
                    self._define()
                    continue
                self._back(token, word)
            else:
                self._back(token)
            node = self._text_or_action()
            if isinstance(node, str):
                self._fail(f"unexpected {{{{{node}}}}}")
            body.append(node)
        if self._name in self.defined and not _is_blank(self.defined[self._name]) and not _is_blank(body):
            self._fail(f'multiple definition of template "{self._name}"')
        return body

    def _define(self) -> None:
        token = self._expect(T.STRING, "define clause")
        name = self._unquote(token)
        self._expect(T.RIGHT, "define clause")
        self._add(name, self._separate_body("define clause"))

    def _separate_body(self, context: str) -> list[n.Node]:
        """A body with variables and loops of its own, up to its `end`."""
        variables, range_depth = self._variables, self._range_depth
        self._variables, self._range_depth = ["$"], 0
        body, ending = self._list()
        self._variables, self._range_depth = variables, range_depth
        if ending != "end":
            self._fail(f"unexpected {{{{{ending}}}}} in {context}")
        return body

    def _add(self, name: str, body: list[n.Node]) -> None:
        present = self.defined.get(name)
        if present is None or _is_blank(present):
            self.defined[name] = body
        elif not _is_blank(body):
            self._fail(f'multiple definition of template "{name}"')

    def _list(self) -> tuple[list[n.Node], str]:
        """Nodes up to `end` or `else`, and which of the two it was."""
        self._depth += 1
        if self._depth > DEPTH:
            self._fail(f"blocks nested deeper than {DEPTH} levels")
        body: list[n.Node] = []
        while True:
            if self._peek_word().kind is T.EOF:
                self._fail("unexpected EOF: an {{end}} is missing")
            node = self._text_or_action()
            if isinstance(node, str):
                self._depth -= 1
                return body, node
            body.append(node)

    def _text_or_action(self) -> n.Node | str:
        token = self._next_word()
        if token.kind is T.TEXT:
            return n.Text(token.pos, token.text)
        if token.kind is not T.LEFT:
            self._unexpected(token, "input")
        return self._action()

    def _action(self) -> n.Node | str:
        token = self._next_word()
        if token.kind is T.KEYWORD:
            match token.text:
                case "if" | "with" | "range":
                    return self._control(token.text, token.pos)
                case "else":
                    following = self._peek_word()
                    if not (following.kind is T.KEYWORD and following.text in ("if", "with")):
                        self._expect(T.RIGHT, "else")
                    return "else"
                case "end":
                    self._expect(T.RIGHT, "end")
                    return "end"
                case "template":
                    return self._template(token.pos)
                case "block":
                    return self._block(token.pos)
                case "break" | "continue":
                    return self._jump(token)
        self._back(token)
        return n.Action(token.pos, self._pipeline("command", T.RIGHT))

    def _jump(self, token: Token) -> n.Node:
        self._expect(T.RIGHT, f"{{{{{token.text}}}}}")
        if not self._range_depth:
            self._fail(f"{{{{{token.text}}}}} outside {{{{range}}}}")
        return n.Break(token.pos) if token.text == "break" else n.Continue(token.pos)

    def _control(self, word: str, pos: int) -> n.Node:
        variables = len(self._variables)
        pipe = self._pipeline(word, T.RIGHT)
        self._range_depth += word == "range"
        body, ending = self._list()
        self._range_depth -= word == "range"
        otherwise: list[n.Node] | None = None
        if ending == "else":
            following = self._peek_word()
            if following.kind is T.KEYWORD and following.text in ("if", "with"):
                if following.text != word:
                    self._unexpected(following, "else")
                self._next_word()
                self._depth += 1
                if self._depth > 4 * DEPTH:
                    self._fail("too many else branches")
                otherwise = [self._control(word, following.pos)]
                self._depth -= 1
            else:
                otherwise, ending = self._list()
                if ending != "end":
                    self._fail("expected end; found {{else}}")
        del self._variables[variables:]
        match word:
            case "if":
                return n.If(pos, pipe, body, otherwise)
            case "with":
                return n.With(pos, pipe, body, otherwise)
        return n.Range(pos, pipe, body, otherwise)

    def _template(self, pos: int) -> n.Node:
        name = self._template_name("template clause")
        token = self._next_word()
        pipe = None
        if token.kind is not T.RIGHT:
            self._back(token)
            pipe = self._pipeline("template clause", T.RIGHT)
        return n.Call(pos, name, pipe)

    def _block(self, pos: int) -> n.Node:
        name = self._template_name("block clause")
        pipe = self._pipeline("block clause", T.RIGHT)
        self._add(name, self._separate_body("block clause"))
        return n.Call(pos, name, pipe)

    def _template_name(self, context: str) -> str:
        token = self._next_word()
        if token.kind is not T.STRING:
            self._unexpected(token, context)
        return self._unquote(token)

    def _unquote(self, token: Token) -> str:
        try:
            return unquote(token.text)
        except ValueError:
            raise SyntaxFault("invalid syntax in a string", token.line) from None

    # Expressions

    def _pipeline(self, context: str, end: T) -> n.Pipeline:
        pipe = n.Pipeline(self._peek_word().pos, [], [])
        self._declarations(pipe, context)
        while True:
            token = self._next_word()
            if token.kind is end:
                self._check(pipe, context)
                return pipe
            if token.kind not in _TERMS:
                self._unexpected(token, context)
            self._back(token)
            pipe.commands.append(self._command())

    def _declarations(self, pipe: n.Pipeline, context: str) -> None:
        """`$x :=`, `$x =`, or in a range `$i, $x :=`, if the pipeline begins with one."""
        while (variable := self._peek_word()).kind is T.VARIABLE:
            self._next_word()
            behind = self._next()
            following = self._next() if behind.kind is T.SPACE else behind
            if following.kind in (T.ASSIGN, T.DECLARE):
                pipe.assigns = following.kind is T.ASSIGN
                pipe.declared.append(variable.text)
                self._variables.append(variable.text)
                return
            if following.kind is not T.COMMA:
                self._back(variable, behind, *([following] if following is not behind else []))
                return
            pipe.declared.append(variable.text)
            self._variables.append(variable.text)
            if context != "range" or len(pipe.declared) >= 2:
                self._fail(f"too many declarations in {context}")
            if self._peek_word().kind not in (T.VARIABLE, T.RIGHT, T.CLOSE):
                self._fail("range can only initialize variables")

    def _check(self, pipe: n.Pipeline, context: str) -> None:
        if not pipe.commands:
            self._fail(f"missing value for {context}")
        for stage, command in enumerate(pipe.commands[1:], start=2):
            if isinstance(command.args[0], n.Bool | n.Dot | n.Nil | n.Num | n.Str):
                self._fail(f"non executable command in pipeline stage {stage}")

    def _command(self) -> n.Command:
        command = n.Command(self._peek_word().pos, [])
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                command.args.append(operand)
            token = self._next()
            if token.kind is T.SPACE:
                continue
            if token.kind in (T.RIGHT, T.CLOSE):
                self._back(token)
            elif token.kind is not T.PIPE:
                self._unexpected(token, "operand")
            break
        if not command.args:
            self._fail("empty command")
        return command

    def _operand(self) -> n.Arg | None:
        term = self._term()
        if term is None or self._peek().kind is not T.FIELD:
            return term
        pos, names = self._peek().pos, []
        while self._peek().kind is T.FIELD:
            names.append(self._next().text[1:])
        match term:
            case n.FieldPath():
                return n.FieldPath(pos, term.names + names)
            case n.Variable():
                return n.Variable(pos, term.name, term.names + names)
            case n.Bool() | n.Str() | n.Num() | n.Nil() | n.Dot():
                self._fail("unexpected . after a term")
        return n.Chain(pos, term, names)

    def _term(self) -> n.Arg | None:
        token = self._next_word()
        match token.kind:
            case T.IDENTIFIER:
                if token.text not in self._functions:
                    raise SyntaxFault(f'function "{token.text}" not defined', token.line)
                return n.Identifier(token.pos, token.text)
            case T.DOT:
                return n.Dot(token.pos)
            case T.NIL:
                return n.Nil(token.pos)
            case T.VARIABLE:
                if token.text not in self._variables:
                    raise SyntaxFault(f'undefined variable "{token.text}"', token.line)
                return n.Variable(token.pos, token.text)
            case T.FIELD:
                return n.FieldPath(token.pos, [token.text[1:]])
            case T.BOOL:
                return n.Bool(token.pos, token.text == "true")
            case T.NUMBER:
                return self._number(token)
            case T.OPEN:
                self._depth += 1
                if self._depth > 2 * DEPTH:
                    self._fail("max expression depth exceeded")
                pipe = self._pipeline("parenthesized pipeline", T.CLOSE)
                self._depth -= 1
                return pipe
            case T.STRING:
                return n.Str(token.pos, self._unquote(token))
        self._back(token)
        return None

    def _number(self, token: Token) -> n.Num:
        try:
            return n.Num(token.pos, number(token.text))
        except ValueError as error:
            raise SyntaxFault(str(error), token.line) from None


def _is_blank(body: list[n.Node]) -> bool:
    return all(isinstance(node, n.Text) and not node.text.strip(" \t\r\n\v\f\x85\xa0") for node in body)
