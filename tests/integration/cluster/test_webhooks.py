"""Warnings at apply time on a real API server, over TLS with certificates of our own making."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import Answer
from support.ports import free_port
from support.site.components import NAMESPACE, OnCluster, Process, ironbell
from support.waiting import eventually

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/ironbell-validate"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/ironbell-webhook-tls"
GROUP = "/apis/tinkerbell.org/v1alpha1/namespaces/default"
MAC = "02:00:00:00:77:01"


@pytest.fixture(scope="module")
def webhooks(on_cluster: OnCluster) -> Iterator[Process]:
    """A replica that serves them; the API server is told to ask it at its address instead of through a Service."""
    port = free_port()
    made = on_cluster.run("tink-controller", "--webhook-address", f"127.0.0.1:{port}", "--webhook-host", "127.0.0.1")
    said = ironbell("install", "--kubeconfig", on_cluster.admin, "--output", "json")
    assert {found["result"] for found in json.loads(said)["objects"]} == {"unchanged"}, "an upgrade takes nothing away"
    configuration = on_cluster.api.get(CONFIGURATION).json
    for webhook in configuration["webhooks"]:
        assert webhook["clientConfig"]["caBundle"]
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    assert on_cluster.api.put(CONFIGURATION, configuration).status == 200
    yield made
    on_cluster.api.delete(CONFIGURATION)
    on_cluster.api.delete(SECRET)


def applied(on_cluster: OnCluster, kind: str, plural: str, spec: dict[str, Any]) -> Answer:
    body = {
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": f"x-{uuid4().hex[:8]}"},
        "spec": spec,
    }
    return on_cluster.api.post(f"{GROUP}/{plural}", body, dryRun="All")


def test_mistakes_are_warned_of_when_they_are_applied(on_cluster: OnCluster, webhooks: Process) -> None:
    def warned() -> list[str]:
        answer = applied(on_cluster, "Template", "templates", {"data": "a: {{ if }}"})
        assert answer.status == 201, answer.body
        return answer.warnings

    (warning,) = eventually(warned)
    assert warning.startswith("spec.data: ")
    assert applied(on_cluster, "Template", "templates", {"data": "a: b"}).warnings == []

    spec = {"interfaces": [{"dhcp": {"mac": MAC}}]}
    metadata = {"name": "m-webhook", "namespace": "default"}
    body = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware", "metadata": metadata, "spec": spec}
    on_cluster.api.made(f"{GROUP}/hardware", body)

    def claimed() -> list[str]:
        return applied(on_cluster, "Hardware", "hardware", spec).warnings

    assert "is also claimed by Hardware default/m-webhook" in eventually(claimed)[0]
    on_cluster.api.delete(f"{GROUP}/hardware/m-webhook")
    assert webhooks.metric("controller_runtime_webhook_requests_total", webhook="/validate/templates", code="200") > 0

    secret = on_cluster.api.get(SECRET).json
    assert secret["type"] == "kubernetes.io/tls"
    for webhook in on_cluster.api.get(CONFIGURATION).json["webhooks"]:
        assert webhook["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
    pem = base64.b64decode(secret["data"]["tls.crt"])
    said = subprocess.run(["openssl", "x509", "-noout", "-checkend", str(60 * 86400)], input=pem, check=False)
    assert said.returncode == 0


def test_references_into_other_namespaces_need_rights_there(on_cluster: OnCluster, webhooks: Process) -> None:
    api, user = on_cluster.api, f"ann-{uuid4().hex[:6]}"
    ann, rbac = api.with_headers(Impersonate_User=user), "/apis/rbac.authorization.k8s.io/v1"
    api.made("/api/v1/namespaces", {"metadata": {"name": f"of-{user}"}})
    rule = {"apiGroups": ["bmc.tinkerbell.org"], "resources": ["*"], "verbs": ["create", "patch"]}
    api.made(f"{rbac}/namespaces/default/roles", {"metadata": {"name": user}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    binding = {"metadata": {"name": user}, "roleRef": role, "subjects": subjects}
    api.made(f"{rbac}/namespaces/default/rolebindings", binding)

    def write(writer: Any, namespace: str, **annotations: str) -> Answer:
        secret = {"name": "idrac", "namespace": namespace}
        body = {
            "apiVersion": "bmc.tinkerbell.org/v1alpha1",
            "kind": "Machine",
            "metadata": {"name": f"x-{uuid4().hex[:8]}", "annotations": annotations},
            "spec": {"connection": {"host": "192.0.2.7", "insecureTLS": True, "authSecretRef": secret}},
        }
        return writer.post("/apis/bmc.tinkerbell.org/v1alpha1/namespaces/default/machines", body, dryRun="All")

    eventually(lambda: write(ann, "default").status == 201)
    assert write(api, f"of-{user}").status == 201
    assert write(api, f"of-{user}", **{"ironbell.dev/bmc-address": "192.0.2.7"}).status == 201
    refused = write(ann, f"of-{user}")
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert f'names Secret "of-{user}/idrac", and user "{user}" may not get secrets idrac' in refused.json["message"]
    refused = write(ann, "default", **{"ironbell.dev/bmc-address-confirmed": "192.0.2.7"})
    assert "determines which address gets the password of this BMC" in refused.json["message"]
