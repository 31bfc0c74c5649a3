"""Random schemas, rules and values: what is asked of both for what rules cost."""

from __future__ import annotations

from random import Random
from typing import Any

_LEAVES: dict[str, list[str]] = {
    "bool": ["true", "false"],
    "int": ["0", "1", "3", "-2"],
    "double": ["1.5", "0.0"],
    "string": ["''", "'a'", "'abc'", "'a longer text with blanks in it'"],
    "bytes": ["b'abc'", "b''"],
    "timestamp": ["timestamp('2026-01-02T03:04:05Z')"],
    "duration": ["duration('1h')"],
    "list(int)": ["[1, 2, 3]", "[1]"],
    "list(string)": ["['a', 'b']", "['abc']"],
    "map": ["{'a': 'b'}", "{'b': 'yy'}"],
    "quantity": ["quantity('1Gi')"],
    "ip": ["ip('192.168.0.1')"],
    "cidr": ["cidr('192.168.0.0/24')"],
    "url": ["url('https://example.org/a')"],
}
_FORMS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "bool": [
        ("{} && {}", ("bool", "bool")), ("{} || {}", ("bool", "bool")), ("!({})", ("bool",)),
        ("{} == {}", ("int", "int")), ("{} != {}", ("string", "string")), ("{} < {}", ("string", "string")),
        ("{} >= {}", ("int", "int")), ("{} == {}", ("string", "string")), ("{} == {}", ("list(string)",) * 2),
        ("{} == {}", ("map", "map")), ("{} == {}", ("bytes", "bytes")), ("{} > {}", ("timestamp", "timestamp")),
        ("{} < {}", ("duration", "duration")), ("{} in {}", ("string", "list(string)")),
        ("{} in {}", ("string", "map")), ("{} in {}", ("int", "list(int)")),
        ("{}.startsWith({})", ("string", "string")),
        ("{}.endsWith({})", ("string", "string")), ("{}.contains({})", ("string", "string")),
        ("{}.matches('^[a-z]+$')", ("string",)), ("{}.isSorted()", ("list(string)",)),
        ("{}.isSorted()", ("list(int)",)),
        ("sets.contains({}, {})", ("list(string)", "list(string)")),
        ("sets.equivalent({}, {})", ("list(int)", "list(int)")),
        ("sets.intersects({}, {})", ("list(string)", "list(string)")), ("isQuantity({})", ("string",)),
        ("isIP({})", ("string",)), ("isCIDR({})", ("string",)), ("isURL({})", ("string",)),
        ("{} == {}", ("quantity", "quantity")), ("{} == {}", ("ip", "ip")), ("{} == {}", ("url", "url")),
        ("{}.isGreaterThan({})", ("quantity", "quantity")), ("{}.containsIP({})", ("cidr", "ip")),
        ("{}.containsIP({})", ("cidr", "string")), ("{}.containsCIDR({})", ("cidr", "cidr")),
        ("{}.isLoopback()", ("ip",)), ("({} ? {} : {})", ("bool", "bool", "bool")),
        ("dyn({}) == {}", ("string", "int")),
        ("type({}) == string", ("string",)),
    ],
    "int": [
        ("({} + {})", ("int", "int")), ("({} * {})", ("int", "int")), ("size({})", ("string",)),
        ("{}.size()", ("list(string)",)), ("{}.size()", ("map",)), ("size({})", ("bytes",)),
        ("{}.indexOf({})", ("string", "string")), ("{}.indexOf({})", ("list(string)", "string")),
        ("{}.lastIndexOf({})", ("list(int)", "int")), ("{}.sum()", ("list(int)",)), ("{}.getHours()", ("timestamp",)),
        ("{}.getMinutes()", ("duration",)), ("{}.sign()", ("quantity",)), ("{}.family()", ("ip",)),
        ("{}.prefixLength()", ("cidr",)), ("({} ? {} : {})", ("bool", "int", "int")), ("int({})", ("double",)),
    ],
    "double": [("({} + {})", ("double", "double")), ("double({})", ("int",))],
    "string": [
        ("({} + {})", ("string", "string")), ("{}.lowerAscii()", ("string",)), ("{}.upperAscii()", ("string",)),
        ("{}.trim()", ("string",)), ("{}.replace({}, {})", ("string", "string", "string")),
        ("{}.substring(0)", ("string",)), ("{}.charAt(0)", ("string",)), ("{}.join()", ("list(string)",)),
        ("{}.join({})", ("list(string)", "string")), ("{}.find('[a-z]+')", ("string",)), ("string({})", ("int",)),
        ("string({})", ("bytes",)), ("string({})", ("duration",)), ("({} ? {} : {})", ("bool", "string", "string")),
        ("'%s-%d'.format([{}, {}])", ("string", "int")), ("{}.format([{}])", ("string", "string")),
        ("{}.getHost()", ("url",)), ("string({})", ("ip",)),
    ],
    "bytes": [("({} + {})", ("bytes", "bytes")), ("bytes({})", ("string",))],
    "timestamp": [("({} + {})", ("timestamp", "duration"))],
    "duration": [("({} - {})", ("timestamp", "timestamp"))],
    "list(int)": [
        ("({} + {})", ("list(int)", "list(int)")), ("[{}, {}]", ("int", "int")), ("{}.distinct()", ("list(int)",)),
        ("{}.reverse()", ("list(int)",)), ("{}.sort()", ("list(int)",)), ("{}.slice(0, 1)", ("list(int)",)),
        ("lists.range(3)", ()),
    ],
    "list(string)": [
        ("({} + {})", ("list(string)", "list(string)")), ("[{}, {}]", ("string", "string")),
        ("{}.split({})", ("string", "string")), ("{}.split(',', 2)", ("string",)), ("{}.findAll('[a-z]')", ("string",)),
        ("{}.sort()", ("list(string)",)), ("({} ? {} : {})", ("bool", "list(string)", "list(string)")),
        ("{}.distinct()", ("list(string)",)),
    ],
    "map": [("{{{}: {}}}", ("string", "string"))],
    "quantity": [("quantity({})", ("string",)), ("{}.add({})", ("quantity", "quantity"))],
    "ip": [("{}.ip()", ("cidr",)), ("ip({})", ("string",))],
    "cidr": [("{}.masked()", ("cidr",)), ("cidr({})", ("string",))],
    "url": [("url({})", ("string",))],
}  # fmt: skip
_FIELDS: list[tuple[str, str]] = [
    ("string", "{}.s"), ("string", "{}.e"), ("int", "{}.i"), ("bool", "{}.b"), ("double", "{}.n"), ("bytes", "{}.by"),
    ("timestamp", "{}.d"), ("duration", "{}.du"), ("list(string)", "{}.ls"), ("list(int)", "{}.l"), ("map", "{}.m"),
    ("string", "{}.m['a']"), ("string", "{}.ls[0]"), ("bool", "has({}.s)"), ("bool", "has({}.m.a)"),
    ("string", "{}.?s.orValue('x')"), ("bool", "{}.?m[?'a'].hasValue()"), ("bool", "{}.ios == '5'"),
    ("bool", "{}.ios == 5"), ("string", "{}.m.a"), ("bool", "{}.?ls.optMap(v, v.size() > 1).orValue(true)"),
]  # fmt: skip
_OBJECTS = ["self.lo", "self.sub.lo", "self.lo[0].lo", "self.mo['a'].lo", "self.lo.map(q, q.sub)"]
"""Lists of objects."""


def schema(random: Random, depth: int = 2) -> dict[str, Any]:
    """Of an object with a field of every kind, some of which have limits; `sub` and `lo` hold such objects again."""

    def limited(found: dict[str, Any], word: str, most: int) -> dict[str, Any]:
        return {**found, word: random.randrange(2, most)} if random.random() < 0.6 else found

    def text() -> dict[str, Any]:
        return limited({"type": "string"}, "maxLength", 300)

    properties = {
        "s": text(),
        "e": {"type": "string", "enum": ["abc", "b", "a longer one"]},
        "i": {"type": "integer"},
        "b": {"type": "boolean"},
        "n": {"type": "number"},
        "by": limited({"type": "string", "format": "byte"}, "maxLength", 99),
        "d": {"type": "string", "format": random.choice(["date-time", "date"])},
        "du": {"type": "string", "format": "duration"},
        "ls": limited({"type": "array", "items": text()}, "maxItems", 50),
        "l": limited({"type": "array", "items": {"type": "integer"}}, "maxItems", 50),
        "m": limited({"type": "object", "additionalProperties": text()}, "maxProperties", 20),
        "ios": limited({"x-kubernetes-int-or-string": True}, "maxLength", 20),
    }
    if depth:
        properties["sub"] = schema(random, depth - 1)
        properties["lo"] = limited({"type": "array", "items": schema(random, depth - 1)}, "maxItems", 30)
        properties["mo"] = limited(
            {"type": "object", "additionalProperties": schema(random, depth - 1)}, "maxProperties", 30
        )
    required = [name for name in properties if random.random() < 0.3]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def value(random: Random, of: dict[str, Any]) -> Any:
    """A value of a schema that `schema` gave, with all its fields."""
    if "x-kubernetes-int-or-string" in of:
        return random.choice(["5", 5])
    match of["type"]:
        case "object" if "additionalProperties" in of:
            return {key: value(random, of["additionalProperties"]) for key in ("a",)}
        case "object":
            return {name: value(random, sub) for name, sub in of["properties"].items()}
        case "array":
            return [value(random, of["items"]) for _ in range(random.randrange(1, 4))]
        case "integer":
            return random.randrange(5)
        case "number":
            return random.choice([1, 2.5])
        case "boolean":
            return random.random() < 0.5
    if "enum" in of:
        return random.choice(of["enum"])
    texts = {"byte": "aGFsbG8=", "date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "duration": "1h30m"}
    return texts.get(of.get("format", ""), "") or random.choice(["", "a", "abc", "a,b,c", "1.2.3.4", "x" * 40])


class Rules:
    """Rules over the objects of `schema`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def rule(self) -> str:
        return self._some("bool", {"object": ["self", "self.sub", "self.sub.sub"]}, 4)

    def _some(self, wanted: str, scope: dict[str, list[str]], depth: int) -> str:
        random = self._random
        choice = random.random()
        if depth <= 0 or choice < 0.35:
            leaves = [*_LEAVES[wanted], *scope.get(wanted, ())] if random.random() < 0.4 else scope.get(wanted, [])
            fields = [form for kind, form in _FIELDS if kind == wanted]
            if fields and (not leaves or random.random() < 0.6):
                return random.choice(fields).format(random.choice(scope["object"]))
            return random.choice(leaves or _LEAVES[wanted])
        if choice < 0.65 and wanted in ("bool", "list(string)", "list(int)"):
            return self._loop(wanted, scope, depth)
        form, parts = random.choice(_FORMS[wanted])
        return form.format(*(self._some(part, scope, depth - 1) for part in parts))

    def _loop(self, wanted: str, scope: dict[str, list[str]], depth: int) -> str:
        """A macro over a list or map, whose body knows the variable."""
        random = self._random
        self._names += 1
        name, item = f"x{self._names}", random.choice(["string", "int", "object", "key"])
        if item == "object":
            over = random.choice(
                ["self.lo", "self.sub.lo", "self.lo[0].lo", "self.mo['a'].lo", "self.lo.map(q, q.sub)"]
            )
        else:
            over = self._some({"string": "list(string)", "int": "list(int)", "key": "map"}[item], scope, depth - 1)
        kind = "string" if item == "key" else item
        inner = {**scope, kind: [*scope.get(kind, ()), name]}
        test = self._some("bool", inner, depth - 1)
        if wanted == "bool":
            if random.random() < 0.25 and item != "key":
                self._names += 1
                place = f"x{self._names}"
                inner = {**inner, "int": [*inner.get("int", ()), place]}
                test = self._some("bool", inner, depth - 1)
                return f"{over}.{random.choice(['all', 'exists', 'existsOne'])}({place}, {name}, {test})"
            return f"{over}.{random.choice(['all', 'exists', 'exists_one'])}({name}, {test})"
        made = self._some(wanted[5:-1], inner, depth - 1)
        if kind == wanted[5:-1] and random.random() < 0.4:
            return f"{over}.filter({name}, {test})"
        filtered = f"{test}, " if random.random() < 0.3 else ""
        return f"{over}.map({name}, {filtered}{made})"
