"""All manifests of an installation, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.api.crd.document import crd_document
from ironbell.app.install.cluster_webhooks import cluster_definitions, cluster_providers, cluster_webhooks
from ironbell.app.install.options import InstallOptions, Object, labels, new_object
from ironbell.app.install.policies import policies
from ironbell.app.install.rbac import access
from ironbell.app.install.webhooks import webhooks
from ironbell.app.install.workloads import workloads
from ironbell.app.systems import engine_kinds
from ironbell.codec import goyaml


def manifests(options: InstallOptions) -> list[Object]:
    """Namespace, definitions, accounts and roles, policies, Services, Deployments, webhooks, entries of inventories.

    Raises:
        UnknownComponentError: a Deployment has no component.
    """
    return [
        _namespace(options),
        *definitions(options),
        *access(options),
        *policies(options),
        *workloads(options),
        *webhooks(options),
        *cluster_webhooks(options),
        *cluster_providers(options),
    ]


def definitions(options: InstallOptions) -> list[Object]:
    """The definitions of our kinds; those of Cluster API if a process serves their webhooks."""
    result = []
    machines = (crd_document(kind) for kind in engine_kinds())
    for document in (*machines, *cluster_definitions(options)):
        metadata = document["metadata"]
        result.append({**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels()}}})
    return result


def manifests_yaml(objects: Iterable[Object]) -> str:
    """The objects as one YAML stream for `kubectl apply`."""
    return "".join(f"---\n{goyaml.dump(document)}" for document in objects)


def _namespace(options: InstallOptions) -> Object:
    namespace = new_object("v1", "Namespace", options.namespace)
    # the servers for machines need the node's network and a few capabilities
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    return namespace
