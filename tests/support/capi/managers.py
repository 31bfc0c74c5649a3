"""Upstream's Cluster API managers on any Kubernetes API: installed from their own manifests, and each run as its pod
would be, with the token of its own ServiceAccount and nothing more.

What a cluster would add is done here: certificates for their webhooks (cert-manager), and addresses in place of
Services.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from ironbell.apiserver.access.pki import Authority
from ironbell.base.clock import SystemClock
from support.api.kubeapi import APPLY, KubeApi
from support.ports import free_ports
from support.programs.catalog import CLUSTER_API, build_program, cluster_api_sources
from support.waiting import eventually

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20
_NOT_HERE = {"Deployment", "Service", "Certificate", "Issuer"}
_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
# As in a pod: the token, the authority and the namespace are files at a fixed path, seen by this process alone.
_IN_POD = f"mount -t tmpfs none /run && mkdir -p {_ACCOUNT} && cp $ACCOUNT/* {_ACCOUNT}/ && exec $0 $@"
_COLLECTIONS = {
    "Namespace": "api/v1/namespaces",
    "ServiceAccount": "api/v1/namespaces/{namespace}/serviceaccounts",
    "CustomResourceDefinition": "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "MutatingWebhookConfiguration": "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}


@dataclass(frozen=True)
class Manager:
    """One manager that runs."""

    name: str
    namespace: str
    log: Path
    health: int
    """The port of its health endpoint."""


@contextmanager
def managers(
    api: KubeApi, *, kubectl: Path, authority: bytes, folder: Path, names: Collection[str] = tuple(CLUSTER_API)
) -> Iterator[dict[str, Manager]]:
    """Install all three providers, or those that are named, and run their managers until the end.

    Raises:
        CannotBuild: a manager is not there and cannot be built.
        AssertionError: with the end of the log of what did not start.
    """
    programs = {name: build_program(name) for name in names}
    pki = Authority(folder / "webhooks", SystemClock())
    pair = pki.server(["127.0.0.1"])
    ports = {name: free_ports(2) for name in programs}
    manifests = {name: _manifests(kubectl, name) for name in programs}
    for name, (webhook, _) in ports.items():
        for one in manifests[name]:
            _point_webhooks(one, f"https://127.0.0.1:{webhook}", pki.certificate_pem)
            _apply(api, one)
    definitions = [one for part in manifests.values() for one in part if one["kind"] == "CustomResourceDefinition"]
    eventually(lambda: all(_is_served(api, one) for one in definitions))
    running: dict[str, Manager] = {}
    with ExitStack() as stack:
        for name, program in programs.items():
            webhook, health = ports[name]
            account = next(one["metadata"] for one in manifests[name] if one["kind"] == "ServiceAccount")
            arguments = [
                "--leader-elect", "--feature-gates=ClusterTopology=true", f"--webhook-port={webhook}",
                f"--webhook-cert-dir={pair.certificate.parent}", f"--webhook-cert-name={pair.certificate.name}",
                f"--webhook-key-name={pair.key.name}", f"--health-addr=127.0.0.1:{health}", "--diagnostics-address=0",
            ]  # fmt: skip
            running[name] = Manager(name, account["namespace"], folder / f"{name}.log", health)
            files = _account_files(api, account, authority, folder / name)
            stack.enter_context(_process([str(program), *arguments], api, files, running[name].log))
        for manager in running.values():
            _wait(manager)
        yield running


def _manifests(kubectl: Path, name: str) -> list[dict[str, Any]]:
    """What upstream installs for a provider, but for what only a cluster would run."""
    config = cluster_api_sources() / CLUSTER_API[name] / "config" / "default"
    done = subprocess.run([kubectl, "kustomize", config], check=True, capture_output=True, timeout=60)
    return [one for one in yaml.safe_load_all(done.stdout) if one["kind"] not in _NOT_HERE]


def _is_served(api: KubeApi, definition: dict[str, Any]) -> bool:
    spec = definition["spec"]
    served = {version["name"] for version in spec["versions"] if version["served"]}
    found = (api.get(f"/apis/{spec['group']}/{version}") for version in served)
    return all(
        answer.status == 200 and any(one["name"] == spec["names"]["plural"] for one in answer.json["resources"])
        for answer in found
    )


def _point_webhooks(value: dict[str, Any], address: str, authority: bytes) -> None:
    """Replace Services by addresses, wherever a client is configured."""
    if value["kind"] == "CustomResourceDefinition":
        clients = [value["spec"]["conversion"]["webhook"]["clientConfig"]]
    else:
        clients = [webhook["clientConfig"] for webhook in value.get("webhooks", ())]
    for client in clients:
        client["url"] = address + client.pop("service")["path"]
        client["caBundle"] = base64.b64encode(authority).decode()


def _apply(api: KubeApi, value: dict[str, Any]) -> None:
    meta = value["metadata"]
    collection = _COLLECTIONS[value["kind"]].format(namespace=meta.get("namespace", ""))
    answer = api.call(
        "PATCH", f"/{collection}/{meta['name']}", json.dumps(value).encode(), content_type=APPLY,
        fieldManager="installer", force=True,
    )  # fmt: skip
    assert answer.status in {200, 201}, f"{value['kind']} {meta['name']}: {answer.body!r}"


def _account_files(api: KubeApi, account: dict[str, Any], authority: bytes, folder: Path) -> Path:
    """What a pod finds of its ServiceAccount."""
    path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts/{account['name']}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = eventually(lambda: api.made(path, body))["status"]["token"]
    folder.mkdir()
    for name, content in (
        ("token", token.encode()),
        ("ca.crt", authority),
        ("namespace", account["namespace"].encode()),
    ):
        file = folder / name
        file.touch(mode=0o600)
        file.write_bytes(content)
    return folder


@contextmanager
def _process(command: list[str], api: KubeApi, account: Path, log: Path) -> Iterator[None]:
    server = urlsplit(api.server)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath), "ACCOUNT": str(account),
        "POD_NAMESPACE": (account / "namespace").read_text(),
        "KUBERNETES_SERVICE_HOST": server.hostname or "", "KUBERNETES_SERVICE_PORT": str(server.port),
    }  # fmt: skip
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *own, "sh", "-c", _IN_POD, *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=account,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(manager: Manager) -> None:
    def is_ready() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{manager.health}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)

    def log() -> str:
        return manager.log.read_text()[-2000:]

    eventually(is_ready, f"{manager.name} is ready", within_s=START_TIMEOUT_S, ignored=(OSError,), seen=log)
