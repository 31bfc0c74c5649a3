"""Two families of kinds that keep one contract each, in groups of their own, and how their objects say things.

Written from the contracts' text: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts (version
v1beta2), the same of release-1.10 (version v1beta1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured, dynamic_kind

PARTS = ("Cluster", "Machine", "Config", "ControlPlane")
"""Of infrastructure (the first two), bootstrap and control plane; each with its template."""


@dataclass(frozen=True)
class Family:
    """The kinds of one provider."""

    contract: str
    """The only one that its definitions name."""
    prefix: str
    version: str
    """Of its own kinds: the contract's version is another thing."""

    @property
    def group(self) -> str:
        return f"{self.prefix.lower()}.example.com"

    @property
    def is_old(self) -> bool:
        return self.contract == "v1beta1"

    def kind(self, part: str) -> Kind[Unstructured]:
        """Such as `Machine`, or `MachineTemplate`."""
        name = f"{self.prefix}{part}"
        return dynamic_kind(self.group, self.version, name, f"{name.lower()}s")

    def core(self, name: str) -> Kind[Unstructured]:
        """A kind of Cluster API itself, in the version that such a provider is written against."""
        return dynamic_kind("cluster.x-k8s.io", self.contract, name, f"{name.lower()}s")

    def reference(self, part: str, name: str, namespace: str = "default") -> dict[str, str]:
        """A reference to one of its objects, as specs of this age have it."""
        kind = self.kind(part)
        if self.is_old:
            return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "namespace": namespace}
        return {"apiGroup": kind.group, "kind": kind.kind, "name": name}

    def referred(self, obj: Unstructured, *path: str) -> str:
        """The name in a reference of one of its objects."""
        value: Any = obj.body
        for step in path:
            value = (value or {}).get(step)
        return str((value or {}).get("name", ""))

    def definitions(self) -> Iterator[dict[str, Any]]:
        """CustomResourceDefinitions, and the role that lets managers at them."""
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for part in PARTS:
            for name in (part, f"{part}Template"):
                kind = self.kind(name)
                yield {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": {
                        "name": f"{kind.plural}.{kind.group}",
                        "labels": {f"cluster.x-k8s.io/{self.contract}": self.version},
                    },
                    "spec": {
                        "group": kind.group,
                        "scope": "Namespaced",
                        "names": {
                            "kind": kind.kind,
                            "plural": kind.plural,
                            "singular": kind.kind.lower(),
                            "listKind": f"{kind.kind}List",
                        },
                        "versions": [
                            {
                                "name": self.version,
                                "served": True,
                                "storage": True,
                                "subresources": {"status": {}},
                                "schema": {
                                    "openAPIV3Schema": {
                                        "type": "object",
                                        "properties": {"spec": anything, "status": anything},
                                    }
                                },
                            }
                        ],
                    },
                }

    def role(self) -> dict[str, Any]:
        """What such a provider brings along, so that the managers of others may use its kinds."""
        rule = {"apiGroups": [self.group], "resources": ["*"], "verbs": ["*"]}
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"{self.prefix.lower()}-provider",
                "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"},
            },
            "rules": [rule],
        }

    def provisioned(self) -> dict[str, Any]:
        return {"ready": True} if self.is_old else {"initialization": {"provisioned": True}}

    def has_data(self, secret: str) -> dict[str, Any]:
        said: dict[str, Any] = {"ready": True} if self.is_old else {"initialization": {"dataSecretCreated": True}}
        return {**said, "dataSecretName": secret}

    def initialized(self) -> dict[str, Any]:
        if self.is_old:
            return {"initialized": True, "ready": True}
        return {"initialization": {"controlPlaneInitialized": True}}

    def counts(self, machines: int, running: int) -> dict[str, Any]:
        said = {"replicas": machines, "readyReplicas": running}
        if self.is_old:
            return {**said, "updatedReplicas": running, "unavailableReplicas": machines - running}
        return {**said, "upToDateReplicas": running, "availableReplicas": running}

    def zones(self, names: list[str]) -> dict[str, Any]:
        """Failure domains: every second one takes control planes."""
        takes = {name: number % 2 == 0 for number, name in enumerate(names)}
        if self.is_old:
            return {"failureDomains": {name: {"controlPlane": yes} for name, yes in takes.items()}}
        return {"failureDomains": [{"name": name, "controlPlane": yes} for name, yes in takes.items()]}

    def broken(self, message: str) -> dict[str, Any]:
        """What says that it will never be well; version v1beta2 has conditions alone for that."""
        return {"failureReason": "CreateError", "failureMessage": message} if self.is_old else {}

    def condition(self, name: str, is_true: bool, message: str, now: str) -> dict[str, Any]:
        """A condition of the old kind has no reason while all is well."""
        said = {"type": name, "status": str(is_true), "lastTransitionTime": now}
        if self.is_old:
            return said if is_true else {**said, "reason": "Broken", "severity": "Error", "message": message}
        return {**said, "reason": "Well" if is_true else "Broken", "message": message}


IRON = Family("v1beta1", "Iron", "v1alpha4")
STEEL = Family("v1beta2", "Steel", "v2")
