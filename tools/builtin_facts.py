#!/usr/bin/env python3
"""Write the facts of Kubernetes' own kinds that the embedded API serves, from a release of Kubernetes.

    tools/builtin_facts.py KUBERNETES API

KUBERNETES and API are the folders of the Go modules `k8s.io/kubernetes` and `k8s.io/api` (`go mod download` brings
them). What is taken: which resources there are, their fields' types, formats, defaults, list and patch strategies, and
which fields vanish when they are zero. Texts are not taken.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src/ironbell/apiserver/builtin/facts.json"
DOCUMENTS = (
    "api__v1", "apis__admissionregistration.k8s.io__v1", "apis__apiregistration.k8s.io__v1", "apis__apps__v1",
    "apis__autoscaling__v1", "apis__autoscaling__v2", "apis__batch__v1", "apis__certificates.k8s.io__v1",
    "apis__coordination.k8s.io__v1", "apis__discovery.k8s.io__v1", "apis__events.k8s.io__v1",
    "apis__flowcontrol.apiserver.k8s.io__v1", "apis__networking.k8s.io__v1", "apis__node.k8s.io__v1",
    "apis__policy__v1", "apis__rbac.authorization.k8s.io__v1", "apis__scheduling.k8s.io__v1",
    "apis__storage.k8s.io__v1",
)  # fmt: skip
# Kinds that would promise what nothing here does: addresses are not handed out.
LEFT_OUT = {
    "componentstatuses", "ipaddresses", "servicecidrs", "volumeattributesclasses", "csistoragecapacities",
}  # fmt: skip
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KEPT = ("type", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
         "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key")  # fmt: skip
_SPECIAL = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity", "x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    f"{_META}FieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_TIMES = {f"{_META}Time", f"{_META}MicroTime"}
_SCALARS = {"bool", "string", "int", "int32", "int64", "float64"}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\s+\w+\s+([\w.\[\]*]+)\s+`.*?json:"([\w]+)((?:,\w+)*)"', re.MULTILINE)
_NAMED = re.compile(r"^type (\w+) (\w+)$", re.MULTILINE)


def main(kubernetes: Path, api: Path) -> None:
    types: dict[str, Any] = {}
    resources: list[dict[str, Any]] = []
    for name in DOCUMENTS:
        document = json.loads((kubernetes / f"api/openapi-spec/v3/{name}_openapi.json").read_text())
        schemas = document["components"]["schemas"]
        for resource in _resources(document["paths"]):
            resource["type"] = _type_of(schemas, resource)
            resources.append(resource)
            _take(resource["type"], schemas, types)
    for name, schema in types.items():
        for mark, fields in _zeros(name, schema, api).items():
            if fields:
                schema[mark] = fields
    _write({"kubernetes": kubernetes.name.rpartition("@v")[2], "resources": resources, "types": types})


def _resources(paths: dict[str, Any]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    subresources: dict[str, list[str]] = {}
    for path, item in sorted(paths.items()):
        parts = [part for part in path.split("/") if part]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespaced = rest[:2] == ["namespaces", "{namespace}"]
        rest = rest[2:] if namespaced else rest
        if rest[:1] == ["watch"] or len(rest) < 2 or rest[1] != "{name}" or rest[0] in LEFT_OUT:
            continue
        if len(rest) == 3:
            subresources.setdefault(rest[0], []).append(rest[2])
        elif len(rest) == 2:
            gvk = item["get"]["x-kubernetes-group-version-kind"]
            found[rest[0]] = {
                "group": gvk["group"], "version": gvk["version"], "kind": gvk["kind"], "plural": rest[0],
                "namespaced": namespaced,
            }  # fmt: skip
    for plural, resource in found.items():
        subs = subresources.get(plural, [])
        resource["status"], resource["scale"] = "status" in subs, "scale" in subs
    return list(found.values())


def _type_of(schemas: dict[str, Any], resource: dict[str, Any]) -> str:
    wanted = {key: resource[key] for key in ("group", "kind", "version")}
    return next(name for name, schema in schemas.items() if wanted in schema.get("x-kubernetes-group-version-kind", ()))


def _take(name: str, schemas: dict[str, Any], types: dict[str, Any]) -> None:
    if name in types:
        return
    if name in _SPECIAL or name in _TIMES:
        types[name] = _SPECIAL.get(name, {"type": "string", "format": "date-time"})
        return
    types[name] = {}
    types[name] = _schema(schemas[name], schemas, types)


def _schema(given: dict[str, Any], schemas: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {key: given[key] for key in _KEPT if key in given}
    target = next((one["$ref"] for one in given.get("allOf", ()) if "$ref" in one), given.get("$ref", ""))
    if target:
        name = target.rpartition("/")[2]
        schema["$ref"] = name
        _take(name, schemas, types)
    for key in ("items", "additionalProperties"):
        if isinstance(given.get(key), dict):
            schema[key] = _schema(given[key], schemas, types)
            schema[key].pop("default", None)
    if "properties" in given:
        schema["properties"] = {name: _schema(sub, schemas, types) for name, sub in sorted(given["properties"].items())}
    if "default" in given and schema.get("$ref") not in _TIMES:
        schema["default"] = given["default"]
    return schema


def _zeros(name: str, schema: dict[str, Any], api: Path) -> dict[str, list[str]]:
    """Fields by what becomes of them when they are zero.

    `omitZero` are not written: scalars that are no pointers, lists and maps. `nullZero` are written as null: lists,
    maps and times that are not marked to be left out.
    """
    parts = name.split(".")
    if parts[:3] != ["io", "k8s", "api"]:
        return {}
    source = "\n".join(path.read_text() for path in sorted((api / parts[3] / parts[4]).glob("*types.go")))
    named = dict(_NAMED.findall(source))
    body = dict(_STRUCT.findall(source)).get(parts[5], "")
    fields = [found for found in _FIELD.findall(body) if found[1] in schema.get("properties", {})]
    omitted = [
        field
        for go_type, field, options in fields
        if "omitempty" in options and (go_type.startswith(("[]", "map[")) or _scalar(go_type, named))
    ]
    null = [
        field
        for go_type, field, options in fields
        if (go_type.startswith(("[]", "map[")) and "omitempty" not in options)
        or (go_type in ("metav1.Time", "metav1.MicroTime") and "omitzero" not in options)
    ]
    return {"omitZero": sorted(omitted), "nullZero": sorted(null)}


def _scalar(go_type: str, named: dict[str, str]) -> bool:
    if go_type.startswith("*"):
        return False
    known = {"types.UID": "string", "v1.PodStatusResult": ""}
    base = named.get(go_type, known.get(go_type, go_type))
    return base in _SCALARS


def _write(facts: dict[str, Any]) -> None:
    def lines(items: list[str]) -> str:
        return ",\n".join(items)

    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    resources = lines([compact(one) for one in facts["resources"]])
    types = lines([f"{json.dumps(name)}:{compact(schema)}" for name, schema in sorted(facts["types"].items())])
    TARGET.write_text(
        f'{{"kubernetes":{json.dumps(facts["kubernetes"])},\n"resources":[\n{resources}],\n"types":{{\n{types}}}}}\n'
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
