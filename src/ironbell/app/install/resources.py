"""The API's collections of the kinds of an installation, and whether a server has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from ironbell.api.client import NotFound
from ironbell.api.clusterctl import PROVIDER
from ironbell.api.kind import Collection
from ironbell.app.admission.places import MUTATING, VALIDATING
from ironbell.app.install.options import Object
from ironbell.kube.transport.http import HttpApi

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
COLLECTIONS = {
    "Namespace": Collection("", "v1", "namespaces", namespaced=False),
    "CustomResourceDefinition": Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False),
    "ServiceAccount": Collection("", "v1", "serviceaccounts", namespaced=True),
    "ClusterRole": Collection(_RBAC, "v1", "clusterroles", namespaced=False),
    "ClusterRoleBinding": Collection(_RBAC, "v1", "clusterrolebindings", namespaced=False),
    "Role": Collection(_RBAC, "v1", "roles", namespaced=True),
    "RoleBinding": Collection(_RBAC, "v1", "rolebindings", namespaced=True),
    "ValidatingAdmissionPolicy": Collection(_ADMISSION, "v1", "validatingadmissionpolicies", namespaced=False),
    "ValidatingAdmissionPolicyBinding": Collection(
        _ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False
    ),
    "Service": Collection("", "v1", "services", namespaced=True),
    "Deployment": Collection("apps", "v1", "deployments", namespaced=True),
    "MutatingWebhookConfiguration": MUTATING,
    "ValidatingWebhookConfiguration": VALIDATING,
    PROVIDER.kind: PROVIDER.collection,
}
"""Collections by kind, in the order in which they are applied."""


def collection_of(document: Object) -> Collection:
    """The collection of an object."""
    return COLLECTIONS[document["kind"]]


@dataclass
class Served:
    """The collections that a server has; each group and version is queried once."""

    api: HttpApi
    _plurals: dict[str, set[str]] = field(default_factory=dict)

    async def has(self, where: Collection) -> bool:
        """Return whether the server serves the collection."""
        plurals = self._plurals.get(where.api_version)
        if plurals is None:
            plurals = self._plurals[where.api_version] = await self._query(where)
        return where.plural in plurals

    async def _query(self, where: Collection) -> set[str]:
        try:
            body = await self.api.raw("GET", where.prefix)
        except NotFound:
            return set()
        resources: list[dict[str, Any]] = msgspec.json.decode(body).get("resources") or []
        return {str(resource["name"]) for resource in resources}
