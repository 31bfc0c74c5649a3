"""Requests made from a server's own OpenAPI v3 documents: every operation, with bodies near what its schema says.

Left alone are what would only break the test: webhooks and policies (they may refuse all writes to come), conversion of
definitions, and emptying the collections that everything else stands on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_NO_WRITES = ("/apis/admissionregistration.k8s.io/",)
_KEPT = ("/api/v1/namespaces", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
_NAMES = ("one", "two", "three")
_DEEPEST = 7


@dataclass(frozen=True)
class Operation:
    """One operation of one path."""

    method: str
    path: str
    parameters: tuple[str, ...]
    content_types: tuple[str, ...]
    body: Document
    schemas: Document


def operations(documents: Iterable[Document]) -> Iterator[Operation]:
    """All operations of these documents that may be tried."""
    for document in documents:
        schemas = document.get("components", {}).get("schemas", {})
        for path, item in document.get("paths", {}).items():
            shared = item.get("parameters", ())
            for method in _METHODS:
                if method in item and _is_allowed(method, path):
                    yield _operation(method, path, item[method], shared, schemas)


def _is_allowed(method: str, path: str) -> bool:
    if method in {"get", "head", "options"}:
        return True
    return not path.startswith(_NO_WRITES) and not (method == "delete" and path in _KEPT)


def _operation(method: str, path: str, operation: Document, shared: Iterable[Document], schemas: Document) -> Operation:
    parameters = (one["name"] for one in (*operation.get("parameters", ()), *shared) if one.get("in") == "query")
    content = operation.get("requestBody", {}).get("content", {})
    types = tuple(content)
    gvk = operation.get("x-kubernetes-group-version-kind", {})
    own = next((one for one in schemas.values() if _is_of(one, gvk)), {})
    body = own if method == "patch" else next(iter(content.values()), {}).get("schema", {})
    return Operation(method.upper(), path, tuple(parameters), types, body, schemas)


def _is_of(schema: Document, gvk: Document) -> bool:
    return bool(gvk) and gvk in schema.get("x-kubernetes-group-version-kind", ())


class OpenApiInput:
    """Requests from operations, the same ones for the same seed."""

    def __init__(self, pick: random.Random, found: list[Operation], value: Callable[[], str]) -> None:
        """`value` gives odd values of query parameters, as text for a URL."""
        self._random, self._operations, self._value = pick, found, value

    def request(self) -> bytes:
        """The next one."""
        pick = self._random
        operation = pick.choice(self._operations)
        target = operation.path.replace("{namespace}", "default").replace("{name}", pick.choice(_NAMES))
        chosen = pick.sample(operation.parameters, min(len(operation.parameters), pick.choice((0, 0, 1, 2, 3))))
        query = "&".join(["timeoutSeconds=1", *(f"{name}={self._value()}" for name in chosen)])
        lines = [f"{operation.method} {target}?{query} HTTP/1.1", "Host: fuzz"]
        body = b""
        if operation.content_types:
            content_type = pick.choice(operation.content_types)
            body = self._body(operation, content_type)
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body

    def _body(self, operation: Operation, content_type: str) -> bytes:
        value = self._of(operation.body, operation.schemas, 0)
        if isinstance(value, dict) and self._random.random() < 0.9:
            self._address(value, operation)
        if content_type == "application/json-patch+json" and isinstance(value, dict):
            value = [{"op": "add", "path": f"/{name}", "value": one} for name, one in value.items()]
        return json.dumps(value).encode()

    def _address(self, value: dict[str, Any], operation: Operation) -> None:
        """Make it likely that the object gets as far as its own schema."""
        kinds = operation.body.get("x-kubernetes-group-version-kind") or [{}]
        reference = operation.body.get("$ref", "").rpartition("/")[2]
        kinds = operation.schemas.get(reference, {}).get("x-kubernetes-group-version-kind") or kinds
        group, version = kinds[0].get("group", ""), kinds[0].get("version", "")
        value["apiVersion"] = f"{group}/{version}" if group else version
        value["kind"] = kinds[0].get("kind", "")
        value["metadata"] = {"name": self._random.choice(_NAMES)}
        if operation.path.startswith(_KEPT[1]) and isinstance(value.get("spec"), dict):
            value["spec"].pop("conversion", None)

    def _of(self, schema: Document, schemas: Document, depth: int) -> Any:
        """A value for a schema, now and then one of another type."""
        pick = self._random
        if "$ref" in schema:
            schema = schemas.get(schema["$ref"].rpartition("/")[2], {})
        for several in ("allOf", "anyOf", "oneOf"):
            if several in schema:
                return self._of(pick.choice(schema[several]), schemas, depth)
        if pick.random() < 0.04:
            return pick.choice((None, True, -1, 2**65, 1e300, "", "\x00", [], {}, [{}], {"": None}, "x" * 3000))
        if schema.get("enum") and pick.random() < 0.8:
            return pick.choice(schema["enum"])
        kind = schema.get("type", "object" if "properties" in schema else "")
        if kind == "object" or not kind:
            return self._object(schema, schemas, depth)
        if kind == "array":
            count = 0 if depth > _DEEPEST else pick.choice((0, 1, 1, 2, 3))
            return [self._of(schema.get("items", {}), schemas, depth + 1) for _ in range(count)]
        return self._scalar(kind, str(schema.get("format", "")))

    def _object(self, schema: Document, schemas: Document, depth: int) -> dict[str, Any]:
        pick = self._random
        if depth > _DEEPEST:
            return {}
        required = set(schema.get("required", ()))
        often = 0.5 if depth < 3 else 0.15
        value = {
            name: self._of(inner, schemas, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or pick.random() < often
        }
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            for _ in range(pick.choice((0, 1, 2))):
                value[pick.choice(("a", "b.c/d", "", "_", "x" * 70, "ä"))] = self._of(more, schemas, depth + 1)
        return value

    def _scalar(self, kind: str, form: str) -> Any:
        pick = self._random
        if kind == "boolean":
            return pick.random() < 0.5
        if kind in {"integer", "number"}:
            return pick.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63), 0.5 if kind == "number" else 7))
        if form == "date-time":
            return pick.choice(
                ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456Z", "9999-99-99T99:99:99Z", "", "now")
            )
        if form == "byte":
            return pick.choice(("YQ==", "YQ", "====", "", "ä"))
        return pick.choice(
            (*_NAMES, "", "10", "1Gi", "10%", "a/b", "10.0.0.1", "a" * 300, "\x00", "💥", "self.x == 1", "(a+)+$")
        )
