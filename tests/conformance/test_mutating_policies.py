"""MutatingAdmissionPolicies: what they make of objects, what follows when they fail, and which are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.api.admissionpolicies import Bind, binding_policies, denied
from support.api.kubeapi import KubeApi
from support.api.kubeobjects import config_map, refusal, thing
from support.waiting import eventually

API_VERSION = "admissionregistration.k8s.io/v1"
POLICIES = f"/apis/{API_VERSION}/mutatingadmissionpolicies"
BINDINGS = f"/apis/{API_VERSION}/mutatingadmissionpolicybindings"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
THING_RULE = {**RULE, "apiGroups": ["conf.example.org"], "resources": ["things"]}
DEPLOYMENT_RULE = {**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
# Of built-in kinds kube-apiserver has one watch for policies of both sorts, which the first that goes away ends.
PARAMETERS = {"apiVersion": "conf.example.org/v1", "kind": "Thing"}


def applying(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patching(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def labelling(key: str, value: str) -> dict[str, Any]:
    """Sets a label to the value of an expression."""
    return applying(f"Object{{metadata: Object.metadata{{labels: {{'{key}': {value}}}}}}}")


def policy(name: str, *mutations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    given = {
        "matchConstraints": {"resourceRules": [RULE]}, "mutations": list(mutations), "reinvocationPolicy": "Never",
        **spec,
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": given}


def binding(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    given = {"policyName": name, "matchResources": {"namespaceSelector": selector}, **spec}
    kind = "MutatingAdmissionPolicyBinding"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": given}


@pytest.fixture
def bind(api: KubeApi, namespace: str) -> Iterator[Bind]:
    """Puts policies into force in the test's namespace."""
    with binding_policies(api, namespace, policies=POLICIES, bindings=BINDINGS, policy=policy, binding=binding) as put:
        yield put


def changed(api: KubeApi, path: str, value: dict[str, Any]) -> dict[str, Any]:
    """What becomes of an object, as soon as the server has taken in the policy that was bound last, which adds the
    label `ready`."""

    def asked() -> dict[str, Any] | None:
        answer = api.post(path, value, dryRun="All")
        return answer.json if "ready" in (answer.json["metadata"].get("labels") or {}) else None

    return eventually(asked)


READY = labelling("ready", "'yes'")


def test_a_configuration_is_applied_to_a_custom_resource(api: KubeApi, things: str, bind: Bind) -> None:
    bind(
        applying(
            "Object{spec: Object.spec{size: object.spec.size + 1, tags: ['b'], "
            "parts: [Object.spec.parts{name: 'y', count: 2}, Object.spec.parts{name: 'x', count: 3}]}}"
        ),
        READY,
        matchConstraints={"resourceRules": [THING_RULE]},
    )
    spec = {"size": 1, "tags": ["a"], "parts": [{"name": "x", "count": 1}, {"name": "z", "count": 9}]}
    made = changed(api, things, thing(spec=spec))
    assert made["spec"]["size"] == 2
    assert made["spec"]["tags"] == ["a", "b"]
    assert made["spec"]["parts"] == [{"name": "y", "count": 2}, {"name": "x", "count": 3}, {"name": "z", "count": 9}]
    assert made["metadata"]["name"] == "one"


def test_a_configuration_is_applied_to_a_built_in_kind(api: KubeApi, namespace: str, bind: Bind) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    bind(
        applying(
            "Object{spec: Object.spec{replicas: 3, template: Object.spec.template{spec: Object.spec.template.spec{"
            "containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{"
            "name: c.name, env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]})}}}}"
        ),
        READY,
        matchConstraints={"resourceRules": [DEPLOYMENT_RULE]},
    )
    labels = {"app": "a"}
    containers = [{"name": name, "image": "i", "env": [{"name": "X", "value": "y"}]} for name in ("one", "two")]
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }
    value = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    made = changed(api, deployments, value)
    assert made["spec"]["replicas"] == 3
    found = made["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in found] == ["one", "two"]
    assert [one["image"] for one in found] == ["i", "i"]
    for one in found:
        assert sorted(each["name"] for each in one["env"]) == ["A", "X"]


def test_a_patch_changes_an_object(api: KubeApi, things: str, bind: Bind) -> None:
    bind(
        patching(
            "[JSONPatch{op: 'test', path: '/spec/size', value: 1}, JSONPatch{op: 'replace', path: '/spec/size', value:"
            " 5}, JSONPatch{op: 'add', path: '/spec/parts', value: []}, "
            "JSONPatch{op: 'add', path: '/spec/parts/-', value: Object.spec.parts{name: 'n', count: 1}}, "
            "JSONPatch{op: 'copy', from: '/spec/parts/0', path: '/spec/free'}, "
            "JSONPatch{op: 'move', from: '/spec/tags/1', path: '/spec/tags/0'}]"
        ),
        patching(
            "has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"
        ),
        patching(
            "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x.org/a'), value: 'c'}, "
            "JSONPatch{op: 'add', path: '/metadata/labels/ready', value: 'yes'}]"
        ),
        matchConstraints={"resourceRules": [THING_RULE]},
    )
    made = changed(api, things, thing(spec={"size": 1, "tags": ["a", "b"]}))
    assert made["spec"] == {
        "size": 5, "parts": [{"name": "n", "count": 1}], "free": {"name": "n", "count": 1}, "tags": ["b", "a"],
    }  # fmt: skip
    assert made["metadata"]["labels"] == {"a": "b", "x.org/a": "c", "ready": "yes"}


def test_a_test_that_does_not_hold_leaves_an_object_alone(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(
        patching(
            "[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'add', path: '/data/b', value: 'y'}]"
        ),
        READY,
    )
    assert changed(api, config_maps, config_map(data={"a": "b"}))["data"] == {"a": "b"}
    assert changed(api, config_maps, config_map(data={"a": "x"}))["data"] == {"a": "x", "b": "y"}


def test_a_test_of_what_is_not_there_fails(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(patching("[JSONPatch{op: 'test', path: '/data/a/b', value: 'x'}]"))
    answer = denied(api, config_maps, config_map())
    why = "JSON Patch: test operation does not apply: is missing path: /data/a/b: missing value"
    assert answer.message.endswith(f"denied request: {why}")


def test_what_expressions_know(api: KubeApi, config_maps: str, namespace: str, bind: Bind) -> None:
    bind(
        labelling("first", "variables.size + '-' + request.operation"),
        labelling("second", "namespaceObject.metadata.name"),
        labelling("third", "object.metadata.labels.first + variables.labels + string(oldObject == null)"),
        READY,
        variables=[
            {"name": "size", "expression": "object.data.?size.orValue('none')"},
            {"name": "labels", "expression": "string(size(object.metadata.labels))"},
        ],
    )
    labels = changed(api, config_maps, config_map(data={"size": "big"}))["metadata"]["labels"]
    assert labels == {"first": "big-CREATE", "second": namespace, "third": "big-CREATE2true", "ready": "yes"}


def test_updates_are_changed_and_deletions_are_not(api: KubeApi, config_maps: str, bind: Bind) -> None:
    api.made(config_maps, config_map(data={"a": "b"}))
    bind(labelling("was", "oldObject.data.a"), matchConstraints={"resourceRules": [{**RULE, "operations": ["*"]}]},
         matchConditions=[{"name": "updates", "expression": "request.operation != 'CREATE'"}])  # fmt: skip

    def updated() -> bool:
        answer = api.patch(f"{config_maps}/one", {"data": {"c": "d"}})
        assert answer.status == 200
        return (answer.json["metadata"].get("labels") or {}) == {"was": "b"}

    eventually(updated)
    assert api.delete(f"{config_maps}/one").status == 200


def test_match_conditions(api: KubeApi, config_maps: str, bind: Bind) -> None:
    conditions = [{"name": "marked", "expression": "object.data.?marked.orValue('') == 'yes'"}]
    bind(READY, matchConditions=conditions)
    changed(api, config_maps, config_map(data={"marked": "yes"}))
    assert "labels" not in api.post(config_maps, config_map(data={"marked": "no"})).json["metadata"]


def test_parameters(api: KubeApi, config_maps: str, things: str, bind: Bind) -> None:
    api.made(things, thing("given", spec={"labels": {"team": "blue"}}))
    name = bind(
        labelling("team", "params.spec.labels.team"), READY, paramKind=PARAMETERS,
        bound={"paramRef": {"name": "given", "parameterNotFoundAction": "Deny"}},
    )  # fmt: skip
    # kube-apiserver may ask before it has seen the parameters
    eventually(lambda: api.post(config_maps, config_map(), dryRun="All").json.get("metadata", {}).get("labels"))
    assert changed(api, config_maps, config_map())["metadata"]["labels"] == {"team": "blue", "ready": "yes"}
    api.delete(f"{things}/given")
    answer = denied(api, config_maps, config_map())
    why = "no params found for policy binding with `Deny` parameterNotFoundAction"
    message = f"policy '{name}' with binding '{name}' denied request: failed to configure binding: {why}"
    assert refusal(answer) == (403, "Forbidden", message)


def test_every_parameter_changes_an_object(api: KubeApi, config_maps: str, things: str, bind: Bind) -> None:
    for name in ("a", "b"):
        api.made(things, thing(name, {"labels": {"given": "yes"}}))
    bind(
        patching("[JSONPatch{op: 'add', path: '/data/' + params.metadata.name, value: 'x'}]"), READY,
        paramKind=PARAMETERS,
        bound={"paramRef": {"selector": {"matchLabels": {"given": "yes"}}, "parameterNotFoundAction": "Allow"}},
    )  # fmt: skip
    assert changed(api, config_maps, config_map(data={"c": "d"}))["data"] == {"a": "x", "b": "x", "c": "d"}


FAILING = labelling("a", "object.data.none")


def test_a_failure_denies(api: KubeApi, config_maps: str, bind: Bind) -> None:
    name = bind(FAILING)
    answer = denied(api, config_maps, config_map(data={"a": "b"}))
    expression = FAILING["applyConfiguration"]["expression"]
    why = f"expression '{expression}' resulted in error: no such key: none"
    message = f"policy '{name}' with binding '{name}' denied request: {why}"
    assert refusal(answer) == (403, "Invalid", message)
    assert answer.json["details"] == {"name": "one", "kind": "configmaps", "causes": [{"message": message}]}
    assert api.post(config_maps, config_map(data={"none": "b"})).status == 201


def test_failures_are_ignored(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(FAILING, READY, failurePolicy="Ignore")
    assert changed(api, config_maps, config_map(data={"a": "b"}))["metadata"]["labels"] == {"ready": "yes"}


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (
            applying("Object{spec: Object.spec{free: Object.spec.wrong{a: 1}}}"),
            (
                'type mismatch: unexpected type name "Object.spec.wrong", expected "Object.spec.free", '
                "which matches field name path from root Object type"
            ),
        ),
        (
            applying("Object{spec: Object.spec{plain: ['a']}}"),
            (
                "error applying patch: invalid ApplyConfiguration: "
                "may not mutate atomic arrays, maps or structs: .spec.plain"
            ),
        ),
        (
            applying("Object{spec: Object.spec{fixed: Object.spec.fixed{a: 'b'}}}"),
            (
                "error applying patch: invalid ApplyConfiguration: "
                "may not mutate atomic arrays, maps or structs: .spec.fixed"
            ),
        ),
        (
            applying("Object{spec: Object.spec{unknown: 1}}"),
            (
                "error applying patch: failed to convert patch object to typed object: "
                ".spec.unknown: field not declared in schema"
            ),
        ),
        (
            patching("[JSONPatch{op: 'remove', path: '/spec/none'}]"),
            "JSON Patch: error in remove for path: '/spec/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            patching("[JSONPatch{op: 'add', path: '/spec/none/a', value: 1}]"),
            'JSON Patch: add operation does not apply: doc is missing path: "/spec/none/a": missing value',
        ),
        (
            patching("[JSONPatch{op: 'copy', from: '/none/a', path: '/spec/a'}]"),
            "JSON Patch: copy operation does not apply: doc is missing from path: /none/a: missing value",
        ),
        (patching("[JSONPatch{op: 'dance', path: '/spec'}]"), "JSON Patch: Unexpected kind: dance"),
    ],
)
def test_changes_that_cannot_be_made(api: KubeApi, things: str, bind: Bind, mutation: dict[str, Any], why: str) -> None:
    bind(mutation, matchConstraints={"resourceRules": [THING_RULE]})
    answer = denied(api, things, thing(spec={"size": 1}))
    assert (answer.status, answer.reason) == (403, "Invalid")
    assert answer.message.partition(" denied request: ")[2] == why


def test_a_selector_is_one_piece(api: KubeApi, namespace: str, bind: Bind) -> None:
    services = f"/api/v1/namespaces/{namespace}/services"
    expression = "Object{spec: Object.spec{selector: {'a': 'b'}}}"
    bind(applying(expression), matchConstraints={"resourceRules": [{**RULE, "resources": ["services"]}]})
    value = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    answer = denied(api, services, value)
    assert answer.message.endswith("may not mutate atomic arrays, maps or structs: .spec.selector")


def test_a_field_that_a_built_in_kind_has_not(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(patching("[JSONPatch{op: 'add', path: '/unknown', value: 1}]"), failurePolicy="Ignore")
    answer = denied(api, config_maps, config_map())
    assert refusal(answer) == (
        500, "InternalError", 'Internal error occurred: strict decoding error: unknown field "unknown"',
    )  # fmt: skip


def test_a_failing_match_condition_denies(api: KubeApi, config_maps: str, bind: Bind) -> None:
    bind(READY, matchConditions=[{"name": "marked", "expression": "object.data.none == 'x'"}])
    answer = denied(api, config_maps, config_map(data={"a": "b"}))
    assert (answer.status, answer.reason) == (403, "Invalid")
    assert answer.message.endswith("expression 'object.data.none == 'x'' resulted in error: no such key: none")


@pytest.mark.parametrize(("again", "count"), [("Never", "1"), ("IfNeeded", "2")])
def test_policies_are_asked_again(api: KubeApi, config_maps: str, bind: Bind, again: str, count: str) -> None:
    bind(
        applying("Object{data: {'count': string(int(object.data.?count.orValue('0')) + 1)}}"),
        applying("Object{data: {'saw': object.data.?later.orValue('nothing')}}"),
        reinvocationPolicy=again,
    )
    bind(applying("Object{data: {'later': 'yes'}}"), READY)

    def asked() -> dict[str, Any] | None:
        made = api.post(config_maps, config_map(data={"a": "b"}), dryRun="All").json
        data: dict[str, Any] = made.get("data") or {}
        return data if {"count", "later"} <= data.keys() else None

    found = eventually(asked)
    assert (found["count"], found["later"]) == (count, "yes")
    # which comes first is not said: one that is asked again sees the other's change in any case
    assert again == "Never" or found["saw"] == "yes"


def test_validating_policies_see_what_mutating_ones_made(api: KubeApi, namespace: str, config_maps: str,
                                                         bind: Bind) -> None:  # fmt: skip
    bind(READY)
    changed(api, config_maps, config_map())
    name, kind = f"{namespace}.example.org", "validatingadmissionpolic"
    check = {
        "apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": "!('ready' in object.metadata.labels)", "message": "seen"}],
        },
    }  # fmt: skip
    bound = binding(name, namespace, validationActions=["Deny"]) | {"kind": "ValidatingAdmissionPolicyBinding"}
    api.made(f"/apis/{API_VERSION}/{kind}ies", check)
    api.made(f"/apis/{API_VERSION}/{kind}ybindings", bound)
    try:
        assert denied(api, config_maps, config_map()).message.endswith("seen")
    finally:
        api.delete(f"/apis/{API_VERSION}/{kind}ybindings/{name}")
        api.delete(f"/apis/{API_VERSION}/{kind}ies/{name}")


def test_policies_are_not_for_policies(api: KubeApi, namespace: str) -> None:
    name = f"{namespace}.example.org"
    rule = {**RULE, "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}
    conditions = [{"name": "own", "expression": f"object.metadata.name.startsWith('{namespace}')"}]
    made = policy(name, READY, matchConstraints={"resourceRules": [rule, RULE]}, matchConditions=conditions)
    api.made(POLICIES, made)
    api.made(BINDINGS, {**binding(name, namespace), "spec": {"policyName": name}})
    try:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        changed(api, path, config_map(f"{namespace}-probe"))
        other = api.post(POLICIES, policy(f"{namespace}-other", READY), dryRun="All")
        assert (other.status, "labels" in other.json["metadata"]) == (201, False)
    finally:
        api.delete(f"{BINDINGS}/{name}")
        api.delete(f"{POLICIES}/{name}")


def test_who_writes_a_policy_must_be_able_to_read_its_parameters(api: KubeApi, namespace: str) -> None:
    rbac, name = "rbac.authorization.k8s.io/v1", f"{namespace}-writer"
    rule = {
        "apiGroups": ["admissionregistration.k8s.io"], "verbs": ["create"],
        "resources": ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
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
    eventually(lambda: writer.post(POLICIES, policy(f"{namespace}.example.org", READY), dryRun="All").status == 201)
    secrets = policy(f"{namespace}.example.org", READY, paramKind={"apiVersion": "v1", "kind": "Secret"})
    answer = writer.post(POLICIES, secrets, dryRun="All")
    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.paramKind"])
    assert 'must have "get" permission on all objects of the referenced paramKind' in answer.message
    reference = {"name": "s", "parameterNotFoundAction": "Deny"}
    answer = writer.post(BINDINGS, binding("none.example.org", namespace, paramRef=reference), dryRun="All")
    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.paramRef"])


FIRST = "spec.mutations[0]"
DELETION = {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}
OPERATIONS = 'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'
REFUSED: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    (policy("p.example.org"), [("spec.mutations", "Required value: mutations must contain at least one item")]),
    (policy("p.example.org", READY, reinvocationPolicy=""), [("spec.reinvocationPolicy", "Required value")]),
    (
        policy("p.example.org", READY, reinvocationPolicy="Always"),
        [("spec.reinvocationPolicy", 'Unsupported value: "Always": supported values: "IfNeeded", "Never"')],
    ),
    (
        policy("p.example.org", READY, failurePolicy="Maybe"),
        [("spec.failurePolicy", 'Unsupported value: "Maybe": supported values: "Fail", "Ignore"')],
    ),
    (
        policy("p.example.org", READY, matchConstraints={}),
        [("spec.matchConstraints.resourceRules", "Required value")],
    ),
    (
        policy("p.example.org", READY, matchConstraints=DELETION),
        [("spec.matchConstraints.resourceRules.operations", OPERATIONS)],
    ),
    (
        policy("p.example.org", READY, matchConditions=[{"name": "a", "expression": "variables.x"}],
               variables=[{"name": "x", "expression": "true"}]),
        [
            (
                "spec.matchConditions[0].expression",
                ('Invalid value: "variables.x": compilation failed: ERROR: <input>:1:1: undeclared reference to '
                "'variables' (in container '')\n | variables.x\n | ^"),
            )
        ],
    ),
    (
        policy("p.example.org", READY, variables=[{"name": "x", "expression": "Object{}"}]),
        [
            (
                "spec.variables[0].expression",
                ('Invalid value: "Object{}": compilation failed: ERROR: <input>:1:7: undeclared reference to '
                "'Object' (in container '')\n | Object{}\n | ......^"),
            )
        ],
    ),
    (policy("p.example.org", {"patchType": ""}), [(f"{FIRST}.patchType", "Required value")]),
    (
        policy("p.example.org", {"patchType": "Merge"}),
        [(f"{FIRST}.patchType",
          'Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"')],
    ),
    (
        policy("p.example.org", {"patchType": "JSONPatch"}),
        [(f"{FIRST}.jsonPatch", "Required value: must be specified when patchType is JSONPatch")],
    ),
    (
        policy("p.example.org", {"patchType": "ApplyConfiguration"}),
        [(f"{FIRST}.applyConfiguration", "Required value: must be specified when patchType is ApplyConfiguration")],
    ),
    (
        policy("p.example.org", READY | {"jsonPatch": {"expression": "[]"}}),
        [(f"{FIRST}.jsonPatch",
          'Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration')],
    ),
    (policy("p.example.org", applying(" ")), [(f"{FIRST}.applyConfiguration.expression", "Required value")]),
    (
        policy("p.example.org", applying(" 1 ")),
        [(f"{FIRST}.applyConfiguration.expression", 'Invalid value: "1": must evaluate to Object but got int')],
    ),
    (
        policy("p.example.org", applying("Object.spec{}")),
        [(f"{FIRST}.applyConfiguration.expression",
          'Invalid value: "Object.spec{}": must evaluate to Object but got Object.spec')],
    ),
    (
        policy("p.example.org", applying("object")),
        [(f"{FIRST}.applyConfiguration.expression", 'Invalid value: "object": must evaluate to Object but got dyn')],
    ),
    (
        policy("p.example.org", patching("JSONPatch{op: 'add', path: '/a', value: 1}")),
        [
            (
                f"{FIRST}.jsonPatch.expression",
                ("Invalid value: \"JSONPatch{op: 'add', path: '/a', value: 1}\": must evaluate to list(JSONPatch) "
                "but got JSONPatch"),
            )
        ],
    ),
    (
        policy("p.example.org", patching("[JSONPatch{op: 1}]")),
        [
            (
                f"{FIRST}.jsonPatch.expression",
                ('Invalid value: "[JSONPatch{op: 1}]": compilation failed: ERROR: <input>:1:14: expected type of field '
                "'op' is 'string' but provided type is 'int'\n | [JSONPatch{op: 1}]\n | .............^"),
            )
        ],
    ),
    (
        policy("p.example.org", patching("[JSONPatch{op: params.op}]")),
        [
            (
                f"{FIRST}.jsonPatch.expression",
                ('Invalid value: "[JSONPatch{op: params.op}]": compilation failed: ERROR: <input>:1:16: undeclared '
                "reference to 'params' (in container '')\n | [JSONPatch{op: params.op}]\n | ...............^"),
            )
        ],
    ),
    (
        policy("p.example.org", applying("Object{spec: Wrong{}}")),
        [
            (
                f"{FIRST}.applyConfiguration.expression",
                ('Invalid value: "Object{spec: Wrong{}}": compilation failed: ERROR: <input>:1:19: undeclared '
                "reference to 'Wrong' (in container '')\n | Object{spec: Wrong{}}\n | ..................^"),
            )
        ],
    ),
    (
        policy("p.example.org", applying("Object{?a: 1}")),
        [
            (
                f"{FIRST}.applyConfiguration.expression",
                ('Invalid value: "Object{?a: 1}": compilation failed: ERROR: <input>:1:12: expected type '
                "'optional_type(int)' but found 'int'\n | Object{?a: 1}\n | ...........^"),
            )
        ],
    ),
    (
        policy("p.example.org", applying("Object{a: variables.none}")),
        [
            (
                f"{FIRST}.applyConfiguration.expression",
                ('Invalid value: "Object{a: variables.none}": compilation failed: ERROR: <input>:1:20: undefined field '
                "'none'\n | Object{a: variables.none}\n | ...................^"),
            )
        ],
    ),
    (binding("p.example.org", "n", policyName=""), [("spec.policyName", "Required value")]),
    (
        binding("p.example.org", "n", matchResources=DELETION),
        [("spec.matchResources.resourceRules.operations", OPERATIONS)],
    ),
    (
        binding("p.example.org", "n", paramRef={"name": "a"}),
        [("spec.paramRef.parameterNotFoundAction", "Required value")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "causes"), REFUSED)
def test_policies_that_are_none(api: KubeApi, value: dict[str, Any], causes: list[tuple[str, str]]) -> None:
    answer = api.post(POLICIES if value["kind"].endswith("Policy") else BINDINGS, value, dryRun="All")
    assert answer.status == 422, answer.body
    assert [(cause["field"], cause["message"]) for cause in answer.causes] == causes


@pytest.mark.parametrize(
    "mutation",
    [
        applying("Object{?spec: optional.none()}"),
        applying("has(object.a) ? Object{} : Object{spec: Object.spec{a: [1, 2].map(i, Object.spec.a{b: i})}}"),
        patching("has(object.a) ? [] : [JSONPatch{op: 'remove', path: '/a'}]"),
        patching("[JSONPatch{op: 'remove', path: '/a'}] + object.b.map(x, JSONPatch{op: 'remove', path: '/b'})"),
        patching("[JSONPatch{op: 'replace', path: '/a', value: Object{a: {'b': [1, 2]}}}]"),
    ],
)
def test_policies_that_are_some(api: KubeApi, mutation: dict[str, Any]) -> None:
    answer = api.post(POLICIES, policy("p.example.org", mutation), dryRun="All")
    assert answer.status == 201, answer.message


def test_defaults(api: KubeApi, namespace: str) -> None:
    made = api.post(POLICIES, policy("d.example.org", READY), dryRun="All").json
    assert made["metadata"]["generation"] == 1
    assert made["spec"] == {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "resourceRules": [{**RULE, "scope": "*"}],
        },
        "mutations": [READY],
        "reinvocationPolicy": "Never",
    }  # fmt: skip
    bound = api.post(BINDINGS, binding("d.example.org", namespace, matchResources={}), dryRun="All").json
    assert bound["spec"] == {
        "policyName": "d.example.org",
        "matchResources": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}},
    }


def test_tables(api: KubeApi, bind: Bind) -> None:
    name = bind(READY, READY)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = api.with_headers(Accept=accept).get(f"{POLICIES}/{name}").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Mutations", "ParamKind", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, 2, "<unset>"]
    table = api.with_headers(Accept=accept).get(f"{BINDINGS}/{name}").json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "PolicyName", "ParamRef", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, name, "<unset>"]
