"""Rules that are no expressions, or none of a bool: what is said of each, and where in its text."""

from __future__ import annotations

from support.api.kubeapi import KubeApi
from support.api.recorded import read

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}
PROPERTIES = {
    "s": TEXT,
    "n": {"type": "integer"},
    "f": {"type": "number"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "items": TEXT},
    "m": {"type": "object", "additionalProperties": TEXT},
}


def said(api: KubeApi, rule: str) -> str:
    """What a server says of a rule; empty if it takes it."""
    rules = [{"rule": rule, "message": "m"}]
    spec = {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    value = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.texts.example.org"},
        "spec": {
            "group": "texts.example.org", "scope": "Namespaced", "names": {"plural": "rules", "kind": "Rule"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip
    answer = api.post(DEFINITIONS, value, dryRun="All")
    if answer.status == 201:
        return ""
    (cause,) = answer.causes
    assert cause["field"].endswith(".properties[spec].x-kubernetes-validations[0].rule")
    head, _, why = cause["message"].partition('"OptionalOldSelf":null}: ')
    assert head.startswith('Invalid value: {"Rule":"')
    return str(why)


def test_what_is_said_of_rules(api: KubeApi) -> None:
    for rule, expected in read("rule_texts"):
        assert said(api, rule) == expected, rule
