"""A webhook behind a Service: found without a cluster network, trusted by the Service's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.api.kubeapi import KubeApi, connect
from support.api.webhookserver import WebhookServer, deny, webhook_server
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually

REGISTRATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def api(embedded_cluster: EmbeddedCluster) -> KubeApi:
    return connect("embedded", embedded_cluster.kubeconfig)


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook"), ["hook.hooks.svc"]) as server:
        yield server


@pytest.fixture
def guarded(api: KubeApi, served: WebhookServer) -> Iterator[str]:
    """The path of Secrets in a namespace that a webhook behind a Service guards."""
    for name in ("hooks", "guarded"):
        api.made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    served.on("/check", lambda request: deny(request, message="no"))
    service = {"namespace": "hooks", "name": "hook", "path": "/check"}
    webhook: dict[str, Any] = {
        "name": "hook.example.org",
        "clientConfig": {"service": service, "caBundle": served.ca_bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "guarded"}},
    }
    kind = "ValidatingWebhookConfiguration"
    meta = {"name": "behind-a-service"}
    value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": meta, "webhooks": [webhook]}
    api.made(REGISTRATION, value)
    yield "/api/v1/namespaces/guarded/secrets"
    api.delete(f"{REGISTRATION}/behind-a-service")
    namespaces = [f"/api/v1/namespaces/{name}" for name in ("hooks", "guarded")]
    for path in namespaces:
        api.delete(path)
    # the next test creates them again
    eventually(lambda: {api.get(path).status for path in namespaces} == {404})


def test_webhook_behind_a_service(api: KubeApi, served: WebhookServer, guarded: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}}
    start = 'Internal error occurred: failed calling webhook "hook.example.org": failed to call webhook: '
    assert api.post(guarded, secret).message == f'{start}service "hook" not found'

    ports = [{"name": "https", "port": 443}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"ports": ports}}
    service["spec"]["selector"] = {"app": "hook"}  # type: ignore[index]
    api.made("/api/v1/namespaces/hooks/services", service)
    assert api.post(guarded, secret).message == f'{start}no endpoints available for service "hook"'

    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"]}],
        "ports": [{"name": "https", "port": served.port}],
    }
    api.made("/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices", endpoints)
    answer = eventually(lambda: (found := api.post(guarded, secret)).status == 400 and found)
    assert answer.message == 'admission webhook "hook.example.org" denied the request: no'


def test_its_certificate_must_be_for_the_service(
    api: KubeApi, guarded: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with webhook_server(tmp_path_factory.mktemp("other"), ["other.hooks.svc"]) as other:
        config = {"service": {"namespace": "hooks", "name": "other2"}, "caBundle": other.ca_bundle}
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig", "value": config}]
        assert api.patch(f"{REGISTRATION}/behind-a-service", patch, "application/json-patch+json").status == 200
        meta = {"name": "other2"}
        service = {"ports": [{"port": 443}], "type": "ExternalName", "externalName": "127.0.0.1"}
        api.made(
            "/api/v1/namespaces/hooks/services",
            {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
        )
        config["service"] = {"namespace": "hooks", "name": "other2", "port": other.port}
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig", "value": config}]
        assert api.patch(f"{REGISTRATION}/behind-a-service", patch, "application/json-patch+json").status == 200
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}}
        answer = api.post(guarded, secret)
    assert answer.status == 500
    assert "tls: failed to verify certificate" in answer.message
    assert "other2.hooks.svc" in answer.message
