"""Functions and literals over random arguments made for each group: as in Go, byte for byte."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from ironbell.codec.gotemplate import TemplateError, render
from ironbell.codec.gotemplate.values import encode

_R = random.Random(7)


def _q(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _mix(parts: Sequence[str], most: int) -> str:
    return "".join(_R.choice(parts) for _ in range(_R.randint(0, most)))


def _int(low: int, high: int) -> int:
    return _R.randint(low, high)


_ATOMS = [
    r"a", r"b", r".", r"\d", r"\w", r"\s", r"[a-c]", r"[^a]", r"^", r"$", r"\b", r"\B", r"x", r"é",
    r"[[:alpha:]]", r"\pL", r"\p{Lu}", r"[a\d-]", r"\x41", r"\A", r"\z", r"(?i)a", r"[-a]", r"[a-]", r"[]a]",
    r"[^]a]", r"\Q.a\E", r"\.", r"(?s).", r"(?m)^", r"\101", r"[\w.]", r"\D", r"[[:^digit:]]", r"[^\W]", r"\PN",
    r"K", r"(?i)k", r"(?-i)", r"\Z", r"\1", r"[b-a]", r"[[:foo:]]", r"\pX", r"(?:", r"\_", r"{", r"}", r"{2}",
    r"a{1,2}", r"a{2,1}", r"a{1001}",
]  # fmt: skip


def _pattern(depth: int = 3) -> str:
    choice = _R.random()
    if depth <= 0 or choice < 0.4:
        return _R.choice(_ATOMS)
    if choice < 0.55:
        return _pattern(depth - 1) + _pattern(depth - 1)
    if choice < 0.65:
        return _pattern(depth - 1) + "|" + _pattern(depth - 1)
    if choice < 0.8:
        return _R.choice(["(", "(", "(?:", "(?P<n>", "(?i:", "(?<m>"]) + _pattern(depth - 1) + ")"
    return _pattern(depth - 1) + _R.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}", "**"])


def _regex() -> str:
    return (
        f"{{{{ $r := {_q(_pattern())} }}}}{{{{ $s := {_q(_mix('aabbcxAK1 .-é_k', 8))} }}}}"
        "{{ mustRegexMatch $r $s }}|"
        "{{ regexFind $r $s | quote }}|"
        f"{{{{ regexFindAll $r $s {_int(-1, 3)} | toJson }}}}|"
        '{{ regexReplaceAll $r $s "<$0,${1}$n$$>" }}|{{ regexReplaceAllLiteral $r $s "$1" }}|'
        f"{{{{ regexSplit $r $s {_int(-1, 3)} | toJson }}}}"
    )


_VALUES = [
    "1", "-5", "0", "255", "1.5", "-0.25", "1e21", "1e-7", "123456789.0", '"abc"', '"é\\n"', '""', "true", "nil",
    "(list nil 1)", '(dict "k" 2.5)', "(until 3)", '(split "," "a,b")', "65", "0.0", "1e100", "8364",
    '(index "a" 0)', "100000.0", '(list nil 1 "x")', "2.5e-5",
]  # fmt: skip


def _printf() -> str:
    template = ""
    for _ in range(_int(1, 3)):
        template += _R.choice(["", "x", "%%"]) + "%" + _mix("+-# 0", 2)
        template += _R.choice(["", "", "5", "12", "*", "[1]", "[2]", "[3]*", "[x]"])
        template += _R.choice(["", "", ".2", ".0", ".10", ".", ".*", ".[1]*"]) + _R.choice("vdsqxXfgGeEtTobOcUFbwz!é")
    return f"{{{{ printf {_q(template)} {' '.join(_R.choice(_VALUES) for _ in range(_int(0, 4)))} }}}}"


def _case() -> str:
    calls = "snakecase kebabcase camelcase title untitle swapcase initials nospace upper lower quote js html urlquery "
    calls += "toJson toRawJson toYaml trim sha1sum adler32sum b64enc b32enc regexQuoteMeta"
    text = _mix("aAbBZz019_- .,éßİΣςñ漢ı😀\t\n\x07%&<\"'\\", 10)
    return f"{{{{ $s := {_q(text)} }}}}" + "|".join(f"{{{{ {name} $s }}}}" for name in calls.split())


def _cut() -> str:
    return (
        f"{{{{ $s := {_q(_mix('aab  é-', 20))} }}}}"
        f"{{{{ wrap {_int(-1, 8)} $s }}}}|{{{{ wrapWith {_int(-1, 8)} `-` $s }}}}"
        f"|{{{{ abbrev {_int(0, 12)} $s }}}}|{{{{ abbrevboth {_int(-1, 12)} {_int(3, 12)} $s }}}}"
        f"|{{{{ trunc {_int(-9, 9)} $s }}}}|{{{{ substr {_int(0, 3)} {_int(0, 9)} $s }}}}"
        f"|{{{{ indent {_int(0, 4)} $s }}}}|{{{{ splitn `a` {_int(-1, 3)} $s }}}}"
    )


_REFERENCE = {
    "2006": "2024", "01": "02", "02": "28", "15": "23", "04": "59", "05": "01", "Jan": "Feb", "January": "March",
    "Mon": "Tue", "MST": "UTC", "Z07:00": "+02:30", "-0700": "-0330", ".000": ".123", ".999": ".5", "_2": " 9",
    "PM": "AM", "3": "11", "1": "12", "2": "29", "06": "70", "002": "060", "4": "7", "5": "8", "-07:00": "+01:00",
    "pm": "pm", "Monday": "Friday", "-": "-", ":": ":", " ": " ", "T": "T", "03": "10",
}  # fmt: skip


def _time() -> str:
    layout = _mix(list(_REFERENCE), 6)
    pattern = "|".join(sorted(map(re.escape, _REFERENCE), key=len, reverse=True))
    filled = re.sub(pattern, lambda match: _REFERENCE[match.group()], layout)
    text = _R.choice([layout, filled, filled, _mix("0123456789-: JanZ+.", 12)])
    return f"{{{{ toDate {_q(layout)} {_q(text)} }}}}|{{{{ (toDate `2006` `2024`).Format {_q(layout)} }}}}"


def _duration() -> str:
    parts = ["1", "2.5", "h", "m", "s", "ms", "ns", "-", ".", "100", "us"]
    return (
        f"{{{{ durationRound {_q(_mix(parts, 5))} }}}}|{{{{ duration {_q(_mix('0123-', 5))} }}}}"
        f"|{{{{ (toDate `2006-01-02` `2020-03-31`).AddDate {_int(-3, 3)} {_int(-15, 15)} {_int(-40, 40)} }}}}"
        f"|{{{{ mustDateModify {_q(_mix(parts[:7], 4))} (toDate `2006-01-02` `2020-01-31`) }}}}"
    )


def _url() -> str:
    parts = ["http", "https", ":", "//", "/", "a", "b.c", "?", "#", "=", "@", "%20", "%zz", "[::1]", ":80", "é", " "]
    keys = _R.sample(["scheme", "host", "path", "query", "opaque", "fragment", "userinfo"], _int(0, 5))
    pairs = " ".join(f"`{key}` {_q(_mix(['a', '/', 'b:c', '?', '%', 'é', ' ', '@', '[::1]', '#'], 3))}" for key in keys)
    return _R.choice([f"{{{{ urlParse {_q(_mix(parts, 8))} }}}}", f"{{{{ urlJoin (dict {pairs}) }}}}"])


def _semver() -> str:
    ops = ["^", "~", ">", "<", ">=", "<=", "!=", "=", "", "=>", "~>"]
    versions = ["1", "1.2", "1.2.3", "0", "0.2", "0.0.3", "1.x", "*", "1.2.x", "1.2.3-beta", "0.0", "0.0.0", "x"]
    joints = ["", " ", "  ", ", ", " || ", " - ", ","]
    constraint = _R.choice(ops) + _R.choice(versions) + _R.choice(joints) + _R.choice(["", ">1.0", "<2.0.0", "1.5"])
    version = _R.choice(
        ["1.2.3", "1.2.4", "1.3.0", "2.0.0", "0.0.3", "0.2.5", "1.2.3-beta.2", "0.0.0", "v1.2.3+b", "3.1"]
    )
    return f"{{{{ semverCompare {_q(constraint)} {_q(version)} }}}}|{{{{ (semver {_q(version)}).Minor }}}}"


def _number() -> str:
    return (
        f"{{{{ {_mix('0123456789_xXbBoOeEpP+-.aAfF', 6) or '0'} }}}}"
        f"|{{{{ int {_q(_mix('0123456789_xXbBoOeE+-. a', 6))} }}}}"
        f"|{{{{ float64 {_q(_mix('0123456789_xXeEp+-. ifn', 6))} }}}}|{{{{ atoi {_q(_mix('0123456789_+- ', 6))} }}}}"
        f"|{{{{ toDecimal {_q(_mix('01234567 89-+', 5))} }}}}"
    )


_NUMBERS = [
    "0", "1", "-1", "7", "2.5", "-2.5", "1e21", "0.1", "1e-7", "9223372036854775807", "-9223372036854775808", '"3"',
    '"x"', "1e300", "123456.789", "0.1234567891", "true", "nil", "1e15", "33.333",
]  # fmt: skip


def _arithmetic() -> str:
    two = ["add", "mul", "sub", "div", "mod", "addf", "mulf", "divf", "subf", "max", "min", "maxf", "minf", "list"]
    calls = [f"{name} {_R.choice(_NUMBERS)} {_R.choice(_NUMBERS)}" for name in _R.sample(two, 4)]
    calls.append(f"round {_R.choice(_NUMBERS)} {_int(-3, 6)}")
    calls.append(f"toJson (list {_R.choice(_NUMBERS)} {_R.choice(_NUMBERS)})")
    calls.append(f"{_R.choice(['floor', 'ceil', 'toYaml', 'quote', 'float64', 'int'])} {_R.choice(_NUMBERS)}")
    calls.append(f"seq {_int(-5, 5)} {_int(-3, 3)} {_int(-5, 5)}")
    return "|".join(f"{{{{ {call} }}}}" for call in calls)


def _decode() -> str:
    return f"{{{{ b64dec {_q(_mix('ABCDYWJj=/+ -', 9))} }}}}|{{{{ b32dec {_q(_mix('ABCDMFRG=27 1', 10))} }}}}"


def _path() -> str:
    path = _q(_mix(["/", ".", "..", "a", "b.c"], 7))
    return "|".join(f"{{{{ {name} {path} }}}}" for name in ("base", "dir", "clean", "ext", "isAbs"))


_TOKENS = [
    "{{", "}}", "{{-", "-}}", " ", ".s", ".", "$", "$x", ":=", "=", "|", "(", ")", "if", "end", "else", "range", "with",
    "1", "-1", '"a"', "`b`", "'c'", "print", "/*", "*/", "a", "\n", "nil", "true", ".l", "{", "}", "define", '"t"',
    "template", "block", "break", ",", ".a.b", "\\", "@", "+", "quote",
]  # fmt: skip


def _syntax() -> str:
    return _mix(_TOKENS, 10)


def _literal() -> str:
    escapes = [
        "a",
        "\\n",
        "\\x41",
        "\\u00e9",
        "\\101",
        '\\"',
        "\\'",
        "\\q",
        "é",
        "\\U0001F600",
        "\\xff",
        "\\ud800",
        "`",
    ]
    return f"{{{{ \"{_mix(escapes, 4)}\" | quote }}}}|{{{{ '{_mix(escapes, 1) or 'a'}' }}}}"


def _mask() -> str:
    dotted = ".".join(str(_R.choice([0, 255, 254, 128, 1, 256])) for _ in range(4))
    mask = _R.choice([_mix("0125.:f", 8), dotted, "::ffff:" + dotted, "fe80::1%eth0"])
    return f"{{{{ netmaskToPrefixLength {_q(mask)} }}}}"


_GROUPS = [
    _regex, _printf, _case, _cut, _time, _duration, _url, _semver, _number, _arithmetic, _decode, _path, _syntax,
    _literal, _mask,
]  # fmt: skip


@pytest.mark.parametrize("make", _GROUPS, ids=lambda make: make.__name__.strip("_"))
def test_arguments_mean_what_they_mean_in_go(oracle: Callable[..., list[Any]], make: Callable[[], str]) -> None:
    _R.seed(make.__name__)
    data = {"s": "str", "l": ["a"], "a": {"b": 1}}
    templates = [make() for _ in range(400)]
    answers = oracle([{"mode": "render", "text": template, "data": data} for template in templates])
    for template, answer in zip(templates, answers, strict=True):
        try:
            got = encode(render(template, {"s": "str", "l": ["a"], "a": {"b": 1.0}}))
        except TemplateError:
            got = None
        assert got == answer.output, f"{template}\nGo says: {answer.error}"
