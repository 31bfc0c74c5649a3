"""Requests that no sane client sends, by the thousand and from a seed: for showing that they do the API no harm."""

# ruff: noqa: E501

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from support.api.openapiinput import OpenApiInput, Operation

GROUP, VERSION, PLURAL, KIND = "fuzz.ironbell.dev", "v1", "victims", "Victim"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PURGE")
_TYPES = (
    "application/json", "application/yaml", "application/apply-patch+yaml", "application/json-patch+json",
    "application/merge-patch+json", "application/strategic-merge-patch+json", "application/vnd.kubernetes.protobuf",
    "text/plain", "", "application/json;charset=\xff", "*/*", "application/json, application/yaml",
)  # fmt: skip
_PARAMETERS = (
    "watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector",
    "timeoutSeconds", "dryRun", "fieldManager", "fieldValidation", "force", "pretty", "propagationPolicy",
    "gracePeriodSeconds", "orphanDependents", "sendInitialEvents", "allowWatchBookmarks", "includeObject", "exclude",
)  # fmt: skip
_PATTERNS = ("(a+)+$", "(a|a)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){25}", "(?=a)b", "[", "a{1000}{1000}", "\\C", "")
_RULES = (
    "self.all(k, self.all(l, self.all(m, k != l || l != m)))", "[self.text]" + ".map(x, x + x)" * 40 + "[0] != ''",
    "self.text.matches(self.text)", "self.text.replace('', self.text).size() > 0", "(" * 200 + "true" + ")" * 200,
    "self == oldSelf", "1 / 0 == 1", "self.nothing", "", "'" * 99, "true || " * 4000 + "true",
)  # fmt: skip


def definition(pattern: str = "(a+)+$", rule: str = _RULES[0]) -> dict[str, Any]:
    """A definition whose objects are judged by this pattern and this rule."""
    properties = {
        "text": {"type": "string", "pattern": pattern},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    spec = {"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": PLURAL, "kind": KIND},
            "scope": "Namespaced",
            "versions": [
                {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                 "subresources": {"status": {}}}
            ],
        },
    }  # fmt: skip


class BadInput:
    """Requests as bytes for the wire, the same ones for the same seed."""

    def __init__(self, seed: int, paths: list[str], operations: list[Operation]) -> None:
        self._random = random.Random(seed)
        self._paths = paths
        self._by_schema = OpenApiInput(self._random, operations, lambda: quote(self._value()))

    def request(self) -> bytes:
        """The next one; its framing is sound, so that it is answered."""
        pick = self._random
        if pick.random() < 0.5:
            return self._by_schema.request()
        method = pick.choices(_METHODS, weights=(8, 8, 6, 10, 3, 1, 1, 1, 1))[0]
        target = self._path() + self._query()
        body = self._body() if method in {"POST", "PUT", "PATCH", "DELETE"} or pick.random() < 0.05 else b""
        lines = [f"{method} {target} HTTP/1.1".encode("latin-1", "replace"), b"Host: fuzz"]
        if body or method in {"POST", "PUT", "PATCH"}:
            lines += [b"Content-Type: " + self._type(method).encode("latin-1"), b"Content-Length: %d" % len(body)]
        if pick.random() < 0.2:
            lines.append(b"Accept: " + pick.choice((
                b"application/json;as=Table;v=v1;g=meta.k8s.io", b"application/yaml", b"application/cbor", b"\xff\xfe",
                b"application/json;as=PartialObjectMetadata;v=v9;g=meta.k8s.io", b";;;,,,=q", b"a/b;q=nan",
            )))  # fmt: skip
        if pick.random() < 0.1:
            lines.append(pick.choice((
                b"X-Long: " + b"y" * 9000, b"Impersonate-User: \xff", b"Impersonate-Extra-%zz: a", b"If-None-Match: *",
                b"User-Agent: \x80\xff/\xc3", b"Cookie: " + b"a=b;" * 500, b"Accept-Encoding: gzip;q=x, *",
            )))  # fmt: skip
        return b"\r\n".join([*lines, b"", b""]) + body

    def _type(self, method: str) -> str:
        if self._random.random() < 0.2:
            return self._random.choice(_TYPES)
        return self._random.choice(_TYPES[2:6] if method == "PATCH" else _TYPES[:2])

    def _path(self) -> str:
        pick = self._random
        path = pick.choice(self._paths)
        if pick.random() < 0.3:
            path += "/" + pick.choice((
                "one", "%2e%2e", "..", "%00", "%zz", "%ff", "a" * 300, "one/status", "one/scale", "one/nothing", "%2F",
                "one//status", "kube-root-ca.crt", "\xe4", "one%0d%0aX:y", "-", "*",
            ))  # fmt: skip
        return path

    def _query(self) -> str:
        pick = self._random
        if pick.random() < 0.5:
            return ""
        pairs = [f"{pick.choice(_PARAMETERS)}={quote(self._value())}" for _ in range(pick.randint(1, 4))]
        # A watch without an end would only take time.
        return "?timeoutSeconds=1&" + "&".join(pairs)

    def _value(self) -> str:
        return self._random.choice((
            "true", "false", "", "0", "1", "-1", "1" * 30, "NaN", "All", "Exact", "Strict", "Foreground", "\x00", "\ud7ff",
            "a=b", "a in (b,c)", "a in (", "!a,,", "metadata.name=one", "spec.x=1", "(" * 500, "a=" + "b" * 5000,
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTF9", "////", "💥" * 20,
        ))  # fmt: skip

    def _body(self) -> bytes:
        pick = self._random
        makers: tuple[Callable[[], bytes], ...] = (
            self._object, self._object, self._object, self._object, self._patch, self._definition, self._garbage,
            self._deep, self._aliases,
        )  # fmt: skip
        return pick.choice(makers)()

    def _object(self) -> bytes:
        pick = self._random
        metadata = {"name": pick.choice(("one", "two", "three")), **self._odd("labels", "managedFields", "finalizers")}
        value = {
            "apiVersion": pick.choice((f"{GROUP}/{VERSION}", "v1", "", None, "a/b/c")),
            "kind": pick.choice((KIND, "ConfigMap", "Secret", "", 1)),
            "metadata": metadata if pick.random() < 0.95 else self._junk(3),
            **self._odd("spec", "data", "status", "rules", "stringData"),
        }
        if pick.random() < 0.4:
            value["spec"] = {"text": "a" * pick.choice((1, 30, 5000)) + "!", "list": list(range(pick.choice((3, 300))))}
        return json.dumps(value).encode()

    def _odd(self, *names: str) -> dict[str, Any]:
        return {name: self._junk(4) for name in names if self._random.random() < 0.3}

    def _junk(self, depth: int) -> Any:
        pick = self._random
        if depth and pick.random() < 0.5:
            if pick.random() < 0.5:
                return [self._junk(depth - 1) for _ in range(pick.randint(0, 4))]
            names = (
                "a",
                "",
                "f:spec",
                ".",
                "k:{}",
                "v:1",
                "manager",
                "operation",
                "fieldsV1",
                "uid",
                "$patch",
                "$retainKeys",
            )
            return {pick.choice(names): self._junk(depth - 1) for _ in range(pick.randint(0, 4))}
        return pick.choice(
            (None, True, 0, -1, 2**63, 2**70, 1e308, 0.1, "", "x", "a" * 300, "\x00", "💥", "Apply", "Update")
        )

    def _patch(self) -> bytes:
        pick = self._random
        pointers = (
            "/spec",
            "/spec/any",
            "/metadata/name",
            "",
            "/",
            "/~2",
            "/spec/list/-",
            "/spec/list/99",
            "/a/b/c",
            "//",
        )
        if pick.random() < 0.2:
            doubling = [{"op": "copy", "from": "/spec", "path": f"/spec/any/{number}"} for number in range(40)]
            return json.dumps(doubling).encode()
        return json.dumps([
            {"op": pick.choice(("add", "remove", "replace", "move", "copy", "test", "x")), "path": pick.choice(pointers),
             "from": pick.choice(pointers), "value": self._junk(3)}
            for _ in range(pick.randint(0, 6))
        ]).encode()  # fmt: skip

    def _definition(self) -> bytes:
        value = definition(self._random.choice(_PATTERNS), self._random.choice(_RULES))
        if self._random.random() < 0.3:
            version = value["spec"]["versions"][0]
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = self._junk(5)
        return json.dumps(value).encode()

    def _garbage(self) -> bytes:
        return self._random.choice((
            b"", b"{", b"null", b"[]", b"\xff\xfe\x00", b"\x1f\x8b\x08", b'{"a":1}{"b":2}', b'{"a":1,"a":2}', b"1e999999",
            b'"\\ud800"', b"- - - -", b"a: &a [*a]", b"!!python/object:os.system x", b"k8s\x00\xff\xff", b"%YAML 9.9\n---",
            b'{"kind":"x","apiVersion":"v1","metadata":{"name":"\\u0000"}}', b"x" * 100_000, b"[" + b"1," * 50_000 + b"1]",
            self._random.randbytes(200),
        ))  # fmt: skip

    def _deep(self) -> bytes:
        depth = self._random.choice((50, 2_000, 100_000))
        return self._random.choice((
            b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth, b"- " * depth,
            b'{"apiVersion":"fuzz.ironbell.dev/v1","kind":"Victim","metadata":{"name":"deep"},"spec":{"any":'
            + b'{"a":' * depth + b"1" + b"}" * depth + b"}}",
        ))  # fmt: skip

    def _aliases(self) -> bytes:
        lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)]
        return b"\n".join(lines)
