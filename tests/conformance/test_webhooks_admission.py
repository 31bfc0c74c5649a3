"""Admission webhooks: asked when they should be, believed, and told of when they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.api.webhookserver import WebhookServer, allow, deny, patch, slowly, webhook_server
from support.waiting import eventually

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
CREATE = ["CREATE"]
Configure = Callable[..., str]


@pytest.fixture(scope="session")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook"), ["hook.webhooks.svc"]) as server:
        yield server


@pytest.fixture
def path() -> str:
    """A path of the test's own."""
    return f"/{uuid4().hex[:8]}"


def rule(*operations: str, resources: list[str] | None = None, **more: Any) -> dict[str, Any]:
    found = {"operations": list(operations), "apiGroups": [""], "apiVersions": ["v1"]}
    return {**found, "resources": resources or ["configmaps"], **more}


@pytest.fixture
def configure(api: KubeApi, namespace: str) -> Iterator[Configure]:
    """Register a webhook for the test's namespace, and wait until it is asked."""
    made: list[str] = []

    def register(kind: str, config: dict[str, Any], *rules: dict[str, Any], **more: Any) -> str:
        name = f"test-{uuid4().hex[:8]}"
        webhook = {
            "name": "hook.example.org",
            "clientConfig": config,
            "rules": list(rules) or [rule("CREATE")],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            **more,
        }
        value = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        api.made(f"{REGISTRATION}/{PLURALS[kind]}", value)
        made.append(f"{REGISTRATION}/{PLURALS[kind]}/{name}")
        return name

    yield register
    for one in made:
        api.delete(one)


@pytest.fixture
def validating(configure: Configure) -> Configure:
    return lambda config, *rules, **more: configure("ValidatingWebhookConfiguration", config, *rules, **more)


@pytest.fixture
def mutating(configure: Configure) -> Configure:
    return lambda config, *rules, **more: configure("MutatingWebhookConfiguration", config, *rules, **more)


def config_map(name: str = "one", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def refused(api: KubeApi, config_maps: str, **more: Any) -> Answer:
    """The answer to a create once the webhook counts; until then creates succeed and are taken back."""

    def attempt() -> Answer | None:
        answer = api.post(config_maps, config_map(f"probe-{uuid4().hex[:6]}"), **more)
        return answer if answer.status >= 400 else None

    return eventually(attempt)


def questions(webhooks: WebhookServer, path: str) -> list[dict[str, Any]]:
    """What a webhook was asked about the test's own writes. Controllers write into its namespace, too: the real
    server's puts `kube-root-ca.crt` there, at any moment after the namespace was made."""
    return [one for one in webhooks.asked.get(path, []) if "system:masters" in one["request"]["userInfo"]["groups"]]


def asked(webhooks: WebhookServer, api: KubeApi, config_maps: str, path: str) -> dict[str, Any]:
    """The first question about a create."""

    def attempt() -> dict[str, Any] | None:
        if not questions(webhooks, path):
            api.post(config_maps, config_map(f"probe-{uuid4().hex[:6]}"))
        return next(iter(questions(webhooks, path)), None)

    return eventually(attempt)


# Refusals


def test_webhook_refuses(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, lambda request: deny(request, message="not today", code=403, reason="Forbidden")))
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == 'admission webhook "hook.example.org" denied the request: not today'


def test_refusal_without_words(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, deny))
    answer = refused(api, config_maps)
    assert answer.status == 400
    assert "reason" not in answer.json
    assert answer.message == 'admission webhook "hook.example.org" denied the request without explanation'


def test_refusal_with_a_reason_only(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, lambda request: deny(request, reason="Because", code=200)))
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (400, "Because")
    assert answer.message == 'admission webhook "hook.example.org" denied the request: Because'


def test_refusal_of_a_mutating_webhook(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, config_maps: str, path: str
) -> None:
    mutating(webhooks.on(path, lambda request: deny(request, message="no", code=422)))
    answer = refused(api, config_maps)
    assert (answer.status, answer.message) == (422, 'admission webhook "hook.example.org" denied the request: no')


# The question


def test_question_tells_all(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, namespace: str, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, allow))
    review = asked(webhooks, api, config_maps, path)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    request = review["request"]
    assert request["uid"]
    assert request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["requestResource"] == request["resource"]
    assert request["namespace"] == namespace
    assert request["operation"] == "CREATE"
    assert request["dryRun"] is False
    assert request["oldObject"] is None
    assert request["object"]["metadata"]["name"] == request["name"]
    assert request["userInfo"]["username"]
    assert "system:masters" in request["userInfo"]["groups"]
    assert request["options"]["kind"] == "CreateOptions"
    assert "subResource" not in request


def test_question_about_an_update_has_both_states(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    api.made(config_maps, config_map(a="1"))
    validating(webhooks.on(path, allow), rule("UPDATE"))

    def attempt() -> dict[str, Any] | None:
        api.patch(f"{config_maps}/one", {"data": {"a": uuid4().hex}})
        return next(iter(questions(webhooks, path)), None)

    request = eventually(attempt)["request"]
    assert request["operation"] == "UPDATE"
    assert request["object"]["data"]["a"] != request["oldObject"]["data"]["a"]
    assert request["options"]["kind"] == "UpdateOptions"


def test_question_about_a_deletion_has_the_old_state(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, lambda request: deny(request, message="keep")), rule("DELETE"))

    def attempt() -> Answer | None:
        api.post(config_maps, config_map(a="1"))
        answer = api.delete(f"{config_maps}/one")
        return answer if answer.status >= 400 else None

    assert eventually(attempt).message == 'admission webhook "hook.example.org" denied the request: keep'
    request = questions(webhooks, path)[0]["request"]
    assert request["object"] is None
    assert request["oldObject"]["data"] == {"a": "1"}


# Changes


def test_webhook_changes_the_object(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, config_maps: str, path: str
) -> None:
    operation = {"op": "add", "path": "/data/added", "value": "yes"}
    mutating(webhooks.on(path, lambda request: patch(request, operation)))

    def attempt() -> dict[str, Any]:
        return api.made(config_maps, config_map(f"probe-{uuid4().hex[:6]}", a="1"))

    made = eventually(lambda: (found := attempt())["data"].get("added") and found)
    assert made["data"] == {"a": "1", "added": "yes"}


def test_validating_webhooks_see_what_mutating_ones_made(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, validating: Configure, config_maps: str, path: str
) -> None:
    operation = {"op": "add", "path": "/metadata/labels", "value": {"seen": "1"}}
    mutating(webhooks.on(path, lambda request: patch(request, operation)))
    other = f"{path}-validating"
    validating(webhooks.on(other, allow))

    def attempt() -> bool:
        api.made(config_maps, config_map(f"probe-{uuid4().hex[:6]}"))
        found = questions(webhooks, other)
        return any(one["request"]["object"]["metadata"].get("labels") == {"seen": "1"} for one in found)

    eventually(attempt)


def test_impossible_patch(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, config_maps: str, path: str
) -> None:
    operation = {"op": "remove", "path": "/data/missing"}
    mutating(webhooks.on(path, lambda request: patch(request, operation)))
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (500, "InternalError")


def test_invalid_result_of_a_change(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, config_maps: str, path: str
) -> None:
    operation = {"op": "add", "path": "/data", "value": {"not a key": "x"}}
    mutating(webhooks.on(path, lambda request: patch(request, operation)))
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == "data[not a key]"


def test_webhook_is_asked_again_when_a_later_one_changed_the_object(
    api: KubeApi, webhooks: WebhookServer, namespace: str, config_maps: str, path: str
) -> None:
    def count(request: dict[str, Any]) -> Any:
        labels = request["request"]["object"]["metadata"].get("labels", {})
        return patch(request, {"op": "add", "path": "/data/second", "value": "1"}) if labels else allow(request)

    def label(request: dict[str, Any]) -> Any:
        return patch(request, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})

    common = {
        "rules": [rule("CREATE")], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }  # fmt: skip
    first = {"name": "a.example.org", "clientConfig": webhooks.on(f"{path}-1", count), "reinvocationPolicy": "IfNeeded"}
    second = {"name": "b.example.org", "clientConfig": webhooks.on(f"{path}-2", label)}
    name = f"test-{uuid4().hex[:8]}"
    value = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [first | common, second | common],
    }  # fmt: skip
    base = f"{REGISTRATION}/mutatingwebhookconfigurations"
    api.made(base, value)
    try:
        eventually(
            lambda: api.made(config_maps, config_map(f"probe-{uuid4().hex[:6]}", a="1"))["data"].get("second") == "1"
        )
    finally:
        api.delete(f"{base}/{name}")


def test_policies_come_before_webhooks_and_see_what_these_changed(
    api: KubeApi, webhooks: WebhookServer, mutating: Configure, namespace: str, config_maps: str, path: str
) -> None:
    def add(request: dict[str, Any]) -> Any:
        found = request["request"]["object"]["data"].get("policy", "nothing")
        return patch(request, {"op": "add", "path": "/data/webhook", "value": f"saw {found}"})

    mutating(webhooks.on(path, add))
    version, name = "admissionregistration.k8s.io/v1", f"{namespace}.example.org"
    expression = "Object{data: {'policy': 'saw ' + object.data.?webhook.orValue('nothing')}}"
    policy = {
        "apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule("CREATE")]}, "reinvocationPolicy": "IfNeeded",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        },
    }  # fmt: skip
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {
        "apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "matchResources": {"namespaceSelector": selector}},
    }  # fmt: skip
    api.made(f"{REGISTRATION}/mutatingadmissionpolicies", policy)
    api.made(f"{REGISTRATION}/mutatingadmissionpolicybindings", binding)

    def changed() -> dict[str, str] | None:
        data: dict[str, str] = api.made(config_maps, config_map(a="1"), dryRun="All")["data"]
        return data if {"policy", "webhook"} <= data.keys() else None

    try:
        found = eventually(changed)
    finally:
        api.delete(f"{REGISTRATION}/mutatingadmissionpolicybindings/{name}")
        api.delete(f"{REGISTRATION}/mutatingadmissionpolicies/{name}")
    assert found == {"a": "1", "webhook": "saw saw nothing", "policy": "saw saw saw nothing"}


# Failures


def test_unreachable_webhook_fails_the_request(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str
) -> None:
    validating({"url": "https://127.0.0.1:1/x", "caBundle": webhooks.ca_bundle})
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (500, "InternalError")
    assert answer.message == (
        'Internal error occurred: failed calling webhook "hook.example.org": failed to call webhook: '
        'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


def test_unreachable_webhook_may_be_passed_over(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    unreachable = {"url": "https://127.0.0.1:1/x", "caBundle": webhooks.ca_bundle}
    validating(unreachable, failurePolicy="Ignore")
    validating(webhooks.on(path, allow))
    asked(webhooks, api, config_maps, path)
    assert api.post(config_maps, config_map()).status == 201


def test_slow_webhook_is_given_up(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, slowly(4)), timeoutSeconds=1)
    answer = refused(api, config_maps)
    assert answer.status == 500
    assert answer.message.startswith(
        'Internal error occurred: failed calling webhook "hook.example.org": failed to call webhook: Post "https://'
    )
    assert answer.message.endswith('?timeout=1s": context deadline exceeded')


def test_webhook_of_an_unknown_authority(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str, tmp_path: Any
) -> None:
    with webhook_server(tmp_path) as other:
        validating(webhooks.on(path, allow) | {"caBundle": other.ca_bundle})
        answer = refused(api, config_maps)
    assert answer.status == 500
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in answer.message


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            lambda request: {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
            "webhook response was absent",
        ),
        (lambda request: allow(request, uid="other"), 'expected response.uid="'),
        (lambda request: allow(request, patch="e30=", patchType="JSONPatch"), "may not return response.patch"),
    ],
)
def test_answers_that_are_none(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str, answer: Any, why: str
) -> None:
    validating(webhooks.on(path, answer))
    found = refused(api, config_maps)
    assert found.status == 500
    assert 'failed calling webhook "hook.example.org": received invalid webhook response: ' in found.message
    assert why in found.message


def test_path_that_the_webhook_does_not_know(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.client_config(path))
    answer = refused(api, config_maps)
    assert answer.message.endswith("failed to call webhook: the server could not find the requested resource")


# When it is asked


def test_object_selector(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, deny), objectSelector={"matchLabels": {"watched": "yes"}})
    watched = config_map("watched")
    watched["metadata"]["labels"] = {"watched": "yes"}

    def attempt() -> bool:
        answer = api.post(config_maps, watched)
        api.delete(f"{config_maps}/watched")
        return answer.status == 400

    eventually(attempt)
    assert api.post(config_maps, config_map("other")).status == 201


def test_match_conditions(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    condition = {
        "name": "named",
        "expression": "object.metadata.name.startsWith('probe') && request.operation == 'CREATE'",
    }
    validating(webhooks.on(path, deny), matchConditions=[condition])
    assert refused(api, config_maps).status == 400
    assert api.post(config_maps, config_map("other")).status == 201


def test_condition_that_fails(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    condition = {"name": "broken", "expression": "object.data.missing == 'x'"}
    validating(webhooks.on(path, allow), matchConditions=[condition])
    answer = refused(api, config_maps)
    assert (answer.status, answer.reason) == (403, "Forbidden")


def test_subresources_are_asked_about_if_named(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, namespace: str, path: str
) -> None:
    validating(webhooks.on(path, deny), rule("UPDATE", resources=["resourcequotas/status"]))
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.made(quotas, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}})
    eventually(lambda: api.patch(f"{quotas}/q/status", {"status": {"hard": {"pods": "7"}}}).status == 400)
    assert questions(webhooks, path)[0]["request"]["subResource"] == "status"
    assert api.patch(f"{quotas}/q", {"metadata": {"labels": {"a": "b"}}}).status == 200


def test_other_version_of_a_resource_counts_as_the_same(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, namespace: str, path: str
) -> None:
    exact = rule("CREATE", resources=["deployments"], apiGroups=["apps"], apiVersions=["v1beta9"])
    validating(webhooks.on(path, deny), exact)
    validating(webhooks.on(f"{path}-2", deny), rule("CREATE", resources=["secrets"]))
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}}
    eventually(lambda: api.post(secrets, value).status == 400)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    assert api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment).status == 201


def test_dry_run_needs_a_webhook_without_side_effects(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, deny), sideEffects="NoneOnDryRun")
    answer = refused(api, config_maps, dryRun="All")
    assert answer.status == 400
    assert questions(webhooks, path)[0]["request"]["dryRun"] is True


def test_warnings_reach_the_client(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    validating(webhooks.on(path, lambda request: allow(request, warnings=["mind the gap"])))

    def attempt() -> bool:
        answer = api.post(config_maps, config_map(f"probe-{uuid4().hex[:6]}"))
        return answer.status == 201 and "mind the gap" in answer.warnings

    eventually(attempt)


def test_configurations_are_never_asked_about(
    api: KubeApi, webhooks: WebhookServer, validating: Configure, config_maps: str, path: str
) -> None:
    everything = {
        "operations": ["*"],
        "apiGroups": ["admissionregistration.k8s.io"],
        "apiVersions": ["*"],
        "resources": ["*"],
    }
    name = validating(webhooks.on(path, deny), rule("CREATE"), everything, namespaceSelector={})
    refused(api, config_maps)
    assert api.delete(f"{REGISTRATION}/validatingwebhookconfigurations/{name}").status == 200


# Configurations


def test_defaults(api: KubeApi, webhooks: WebhookServer, mutating: Configure) -> None:
    config = {"service": {"namespace": "a", "name": "b"}, "caBundle": webhooks.ca_bundle}
    name = mutating(config, failurePolicy="Ignore")
    webhook = api.get(f"{REGISTRATION}/mutatingwebhookconfigurations/{name}").json["webhooks"][0]
    assert webhook["matchPolicy"] == "Equivalent"
    assert webhook["objectSelector"] == {}
    assert webhook["timeoutSeconds"] == 10
    assert webhook["reinvocationPolicy"] == "Never"
    assert webhook["rules"][0]["scope"] == "*"
    assert webhook["clientConfig"]["service"]["port"] == 443


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "hook"}, "webhooks[0].name", "should be a domain with at least three segments separated by dots"),
    ({"sideEffects": None}, "webhooks[0].sideEffects", "must specify one of None, NoneOnDryRun"),
    ({"sideEffects": "Some"}, "webhooks[0].sideEffects", 'Unsupported value: "Some"'),
    ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds", "the timeout value must be between 1 and 30 seconds"),
    ({"failurePolicy": "Maybe"}, "webhooks[0].failurePolicy", 'Unsupported value: "Maybe"'),
    ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions", "must specify one of v1, v1beta1"),
    ({"admissionReviewVersions": ["v9"]}, "webhooks[0].admissionReviewVersions", "must include at least one of"),
    ({"clientConfig": {}}, "webhooks[0].clientConfig", "exactly one of url or service is required"),
    ({"clientConfig": {"url": "http://a/b"}}, "webhooks[0].clientConfig.url", "'https' is the only allowed URL scheme"),
    (
        {"clientConfig": {"url": "https://a/b?c=d"}},
        "webhooks[0].clientConfig.url",
        "query parameters are not permitted",
    ),
    ({"rules": [rule("*", "CREATE")]}, "webhooks[0].rules[0].operations", "if '*' is present, must not specify other"),
    ({"rules": [rule("READ")]}, "webhooks[0].rules[0].operations[0]", 'Unsupported value: "READ"'),
    ({"rules": [rule("CREATE", resources=["*", "pods"])]}, "webhooks[0].rules[0].resources", "if '*' is present"),
    (
        {"matchConditions": [{"name": "a", "expression": "object.("}]},
        "webhooks[0].matchConditions[0].expression",
        "compilation failed",
    ),
]


@pytest.mark.parametrize(("part", "field", "why"), FAULTS)
def test_impossible_configurations(api: KubeApi, part: dict[str, Any], field: str, why: str) -> None:
    webhook = {
        "name": "hook.example.org", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    value = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"test-{uuid4().hex[:8]}"}, "webhooks": [webhook | part],
    }  # fmt: skip
    answer = api.post(f"{REGISTRATION}/validatingwebhookconfigurations", value)
    assert answer.status == 422, answer.body
    assert field in {cause["field"] for cause in answer.causes}
    assert why in answer.message
