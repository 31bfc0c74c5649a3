"""ValidatingAdmissionPolicies: what they are asked, what follows from their answers, and which are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.api.admissionpolicies import Bind, binding_policies, denied
from support.api.kubeapi import Answer, KubeApi
from support.api.kubeobjects import config_map, refusal
from support.waiting import eventually

API_VERSION = "admissionregistration.k8s.io/v1"
POLICIES = f"/apis/{API_VERSION}/validatingadmissionpolicies"
BINDINGS = f"/apis/{API_VERSION}/validatingadmissionpolicybindings"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


def policy(name: str, *validations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    given = {"matchConstraints": {"resourceRules": [RULE]}, "validations": list(validations), **spec}
    return {"apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": given}


def binding(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    given = {
        "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector}, **spec,
    }  # fmt: skip
    kind = "ValidatingAdmissionPolicyBinding"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": given}


@pytest.fixture
def bind(api: KubeApi, namespace: str) -> Iterator[Bind]:
    """Puts policies into force in the test's namespace."""
    with binding_policies(api, namespace, policies=POLICIES, bindings=BINDINGS, policy=policy, binding=binding) as put:
        yield put


def test_what_does_not_hold_is_denied(api: KubeApi, config_maps: str, bind: Bind) -> None:
    name = bind({"expression": "object.data.size == 'small'"})
    answer = denied(api, config_maps, config_map(data={"size": "big"}))
    why = (
        f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
        "failed expression: object.data.size == 'small'"
    )
    assert refusal(answer) == (422, "Invalid", f'configmaps "one" is forbidden: {why}')
    assert answer.json["details"] == {"name": "one", "kind": "configmaps", "causes": [{"message": why}]}
    assert api.post(config_maps, config_map(data={"size": "small"})).status == 201
    assert api.patch(f"{config_maps}/one", {"data": {"size": "big"}}).status == 422
    assert api.patch(f"{config_maps}/one", {"data": {"colour": "red"}}).status == 200
    assert api.delete(f"{config_maps}/one").status == 200


@pytest.mark.parametrize(
    ("validation", "status", "reason", "message"),
    [
        ({"message": " too big "}, 422, "Invalid", "too big"),
        ({"messageExpression": "'found ' + object.data.size"}, 422, "Invalid", "found big"),
        ({"messageExpression": "'found ' + object.data.none", "message": "m"}, 422, "Invalid", "m"),
        ({"messageExpression": "' '", "message": "m"}, 422, "Invalid", "m"),
        ({"messageExpression": "'a\\nb'", "message": "m"}, 422, "Invalid", "m"),
        ({"reason": "Forbidden", "message": "m"}, 403, "Forbidden", "m"),
        ({"reason": "RequestEntityTooLarge", "message": "m"}, 413, "RequestEntityTooLarge", "m"),
    ],
)
def test_messages_and_reasons(
    api: KubeApi, config_maps: str, bind: Bind, validation: dict[str, str], status: int, reason: str, message: str
) -> None:
    bind({"expression": "object.data.size == 'small'", **validation})
    answer = denied(api, config_maps, config_map(data={"size": "big"}))
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.message.endswith(f" denied request: {message}")


def test_what_expressions_know(api: KubeApi, config_maps: str, namespace: str, bind: Bind) -> None:
    bind(
        {"expression": "request.operation == 'CREATE' && request.namespace == namespaceObject.metadata.name"},
        {"expression": f"namespaceObject.metadata.name == '{namespace}' && has(namespaceObject.spec.finalizers)"},
        {"expression": "oldObject == null && object.metadata.name == request.name"},
        {"expression": "variables.twice == 4 && variables.size > 1"},
        {"expression": "!has(object.data.stop)", "message": "stop"},
        variables=[
            {"name": "size", "expression": "object.data.?size.orValue('2') == '2' ? 2 : 0"},
            {"name": "twice", "expression": "variables.size * 2"},
            {"name": "never", "expression": "object.data.nothing.at.all"},
        ],
    )
    answer = denied(api, config_maps, config_map(data={"stop": "1"}))
    assert answer.message.endswith("denied request: stop")
    assert api.post(config_maps, config_map(data={"a": "b"})).status == 201


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_errors_of_evaluation(api: KubeApi, config_maps: str, bind: Bind, failure_policy: str) -> None:
    bind(
        {"expression": "object.data.none == 'x'"},
        {"expression": "!has(object.data.stop)", "message": "stop"},
        failurePolicy=failure_policy,
    )
    answer = denied(api, config_maps, config_map(data={"stop": "1"}))
    error = "expression 'object.data.none == 'x'' resulted in error: no such key: none"
    assert answer.message.endswith(f"denied request: {error if failure_policy == 'Fail' else 'stop'}")
    assert api.post(config_maps, config_map(data={})).status == (201 if failure_policy == "Ignore" else 422)


def test_match_conditions(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(
        {"expression": "false", "message": "never"},
        matchConditions=[
            {"name": "marked", "expression": "has(object.metadata.labels) && 'x' in object.metadata.labels"}
        ],
    )
    assert denied(api, config_maps, config_map(meta={"labels": {"x": "y"}})).message.endswith("never")
    assert api.post(config_maps, config_map()).status == 201


def test_a_failing_match_condition_denies(api: KubeApi, config_maps: str, bind: Bind) -> None:
    conditions = [{"name": name, "expression": f"object.data.{name} == 'x'"} for name in ("one", "two")]
    bind({"expression": "true"}, matchConditions=conditions)
    why = [f"expression 'object.data.{name} == 'x'' resulted in error: no such key: {name}" for name in ("one", "two")]
    answer = denied(api, config_maps, config_map(data={"a": "b"}))
    assert answer.message.endswith(f"denied request: [{', '.join(why)}]")
    answer = denied(api, config_maps, config_map(data={"one": "x"}))
    assert answer.message.endswith(f"denied request: {why[1]}")


def test_what_is_left_out(api: KubeApi, config_maps: str, bind: Bind) -> None:
    constraints = {
        "resourceRules": [RULE],
        "excludeResourceRules": [{**RULE, "resourceNames": ["spared"]}],
        "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
    }
    bind({"expression": "false", "message": "never"}, matchConstraints=constraints)
    denied(api, config_maps, config_map())
    assert api.post(config_maps, config_map("spared")).status == 201
    assert api.post(config_maps, config_map("two", meta={"labels": {"free": "1"}})).status == 201


def test_warnings_instead_of_denials(api: KubeApi, config_maps: str, bind: Bind) -> None:
    name = bind({"expression": "false", "message": "m"}, bound={"validationActions": ["Warn", "Audit"]})

    def warned() -> Answer | None:
        answer = api.post(config_maps, config_map(), dryRun="All")
        return answer if answer.warnings else None

    answer = eventually(warned)
    place = f"ValidatingAdmissionPolicy '{name}' with binding '{name}'"
    assert (answer.status, answer.warnings) == (201, [f"Validation failed for {place}: m"])


def test_parameters(api: KubeApi, config_maps: str, namespace: str, bind: Bind) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    api.made(config_maps, config_map("limits", data={"most": "2"}))
    bind(
        {"expression": "!has(object.data.size) || object.data.size <= params.data.most",
         "messageExpression": "'at most ' + params.data.most"},
        paramKind=kind, bound={"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}},
    )  # fmt: skip
    assert denied(api, config_maps, config_map(data={"size": "3"})).message.endswith("at most 2")
    assert api.post(config_maps, config_map(data={"size": "1"})).status == 201
    api.patch(f"{config_maps}/limits", {"data": {"most": "4"}})
    eventually(lambda: api.post(config_maps, config_map("two", data={"size": "3"})).status == 201)
    api.delete(f"{config_maps}/limits")
    answer = denied(api, config_maps, config_map("three"))
    assert answer.message.endswith("no params found for policy binding with `Deny` parameterNotFoundAction")


def test_parameters_by_their_labels(api: KubeApi, config_maps: str, bind: Bind) -> None:
    for name, most in (("a", "2"), ("b", "4")):
        api.made(config_maps, config_map(name, {"labels": {"limits": "yes"}}, data={"most": most}))
    bind(
        {"expression": "!has(object.data.size) || object.data.size <= params.data.most"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        bound={
            "paramRef": {
                "selector": {"matchLabels": {"limits": "yes"}}, "namespace": "", "parameterNotFoundAction": "Allow",
            }
        },
    )  # fmt: skip
    denied(api, config_maps, config_map(data={"size": "3"}))
    assert api.post(config_maps, config_map(data={"size": "1"})).status == 201


def test_who_writes_a_policy_must_be_able_to_read_its_parameters(api: KubeApi, namespace: str) -> None:
    rbac, name = "rbac.authorization.k8s.io/v1", f"{namespace}-writer"
    rule = {
        "apiGroups": ["admissionregistration.k8s.io"], "verbs": ["create"],
        "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
    }  # fmt: skip
    role = {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    bound = {
        "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": name}],
    }  # fmt: skip
    api.made(f"/apis/{rbac}/clusterroles", role)
    api.made(f"/apis/{rbac}/clusterrolebindings", bound)
    writer = api.with_headers(Impersonate_User=name)
    plain = policy(f"{namespace}.example.org", SMALL)
    eventually(lambda: writer.post(POLICIES, plain, dryRun="All").status == 201)
    secrets = policy(f"{namespace}.example.org", SMALL, paramKind={"apiVersion": "v1", "kind": "Secret"})
    answer = writer.post(POLICIES, secrets, dryRun="All")
    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.paramKind"])
    assert 'must have "get" permission on all objects of the referenced paramKind' in answer.message
    reference = {"name": "s", "parameterNotFoundAction": "Deny"}
    answer = writer.post(BINDINGS, binding("none.example.org", namespace, paramRef=reference), dryRun="All")
    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.paramRef"])


SMALL = {"expression": "true"}


@pytest.mark.parametrize(
    ("value", "causes"),
    [
        (policy("p.example.org"), ["spec.validations", "spec.auditAnnotations"]),
        (policy("p.example.org", SMALL, matchConstraints={}), ["spec.matchConstraints.resourceRules"]),
        (policy("p.example.org", SMALL, failurePolicy="Maybe"), ["spec.failurePolicy"]),
        (policy("p.example.org", {"expression": " "}), ["spec.validations[0].expression"]),
        (policy("p.example.org", {"expression": "object.a"}), ["spec.validations[0].expression"]),
        (policy("p.example.org", {"expression": "object.a == 1"}), []),
        (policy("p.example.org", {"expression": "nothing.a == 1"}), ["spec.validations[0].expression"]),
        (policy("p.example.org", {"expression": "params.a == 1"}), ["spec.validations[0].expression"]),
        (policy("p.example.org", {"expression": "1 +"}), ["spec.validations[0].expression"]),
        (policy("p.example.org", {"expression": "'a'"}), ["spec.validations[0].expression"]),
        (policy("p.example.org", SMALL | {"messageExpression": "1"}), ["spec.validations[0].messageExpression"]),
        (policy("p.example.org", SMALL | {"message": "a\nb"}), ["spec.validations[0].message"]),
        (policy("p.example.org", SMALL | {"reason": "Because"}), ["spec.validations[0].reason"]),
        (policy("p.example.org", SMALL, variables=[{"name": "1a", "expression": "1"}]), ["spec.variables[0].name"]),
        (
            policy("p.example.org", {"expression": "variables.a == 1"}, variables=[{"name": "b", "expression": "1"}]),
            ["spec.validations[0].expression"],
        ),
        (policy("p.example.org", SMALL, paramKind={"kind": "A"}), ["spec.paramKind.apiVersion"]),
        (
            policy("p.example.org", SMALL, matchConditions=[{"name": "a", "expression": "1"}]),
            ["spec.matchConditions[0].expression"],
        ),
        (binding("p.example.org", "n", validationActions=["Deny", "Warn"]), ["spec.validationActions"]),
        (binding("p.example.org", "n", validationActions=["Deny", "Deny"]), ["spec.validationActions[1]"]),
        (binding("p.example.org", "n", validationActions=["No"]), ["spec.validationActions[0]"]),
        (binding("p.example.org", "n", validationActions=[]), ["spec.validationActions"]),
        (binding("p.example.org", "n", policyName=""), ["spec.policyName"]),
        (
            binding("p.example.org", "n", paramRef={"parameterNotFoundAction": "Deny"}),
            ["spec.paramRef"],
        ),
        (binding("p.example.org", "n", paramRef={"name": "a"}), ["spec.paramRef.parameterNotFoundAction"]),
    ],
)
def test_policies_that_are_none(api: KubeApi, value: dict[str, Any], causes: list[str]) -> None:
    answer = api.post(POLICIES if value["kind"].endswith("Policy") else BINDINGS, value, dryRun="All")
    assert answer.status == (422 if causes else 201), answer.body
    assert not causes or [cause["field"] for cause in answer.causes] == causes, answer.body


def test_defaults(api: KubeApi, namespace: str) -> None:
    made = api.post(POLICIES, policy("d.example.org", SMALL), dryRun="All").json
    assert made["metadata"]["generation"] == 1
    assert made["spec"] == {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "resourceRules": [{**RULE, "scope": "*"}],
        },
        "validations": [SMALL],
    }  # fmt: skip
    bound = api.post(BINDINGS, binding("d.example.org", namespace, matchResources={}), dryRun="All").json
    assert bound["spec"]["matchResources"] == {
        "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    }  # fmt: skip
