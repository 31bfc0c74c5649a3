"""Validation of Services, Ingresses and PodDisruptionBudgets.

Source: kubernetes/kubernetes: pkg/apis/core/validation/validation.go (ValidateService),
pkg/apis/networking/validation/validation.go, pkg/registry/policy/poddisruptionbudget/strategy.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver.fielderrors import FieldError, invalid, not_supported, required
from ironbell.apiserver.strategy import Plain

Object = dict[str, Any]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PORT = "must be between 1 and 65535, inclusive"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITIES = ("ClientIP", "None")


class ServiceRules(Plain):
    """A Service names ports; no address is allocated here."""

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        errors: list[FieldError] = []
        kind, ports = spec.get("type", ""), spec.get("ports") or ()
        if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
            errors.append(required("spec.ports"))
        if kind not in _TYPES:
            errors.append(not_supported("spec.type", kind, _TYPES))
        if spec.get("sessionAffinity") not in _AFFINITIES:
            errors.append(not_supported("spec.sessionAffinity", spec.get("sessionAffinity", ""), _AFFINITIES))
        for index, port in enumerate(ports):
            errors += _port_faults(port, f"spec.ports[{index}]", alone=len(ports) == 1)
        return errors


def _port_faults(port: Object, where: str, *, alone: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not port.get("name") and not alone:
        errors.append(required(f"{where}.name"))
    number = port.get("port", 0)
    if not 0 < number < 65536:
        errors.append(invalid(f"{where}.port", number, _PORT))
    if port.get("protocol", "TCP") not in _PROTOCOLS:
        errors.append(not_supported(f"{where}.protocol", port["protocol"], _PROTOCOLS))
    target = port.get("targetPort", number)
    if isinstance(target, int) and not 0 < target < 65536:
        errors.append(invalid(f"{where}.targetPort", target, _PORT))
    return errors


class IngressRules(Plain):
    """An Ingress has a backend, and paths with a path type."""

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        errors: list[FieldError] = []
        if not spec.get("rules") and not spec.get("defaultBackend"):
            errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
        for index, rule in enumerate(spec.get("rules") or ()):
            for place, path in enumerate((rule.get("http") or {}).get("paths") or ()):
                errors += _path_faults(path, f"spec.rules[{index}].http.paths[{place}]")
        return errors


def _path_faults(path: Object, where: str) -> list[FieldError]:
    kind, text = path.get("pathType"), path.get("path", "")
    if not kind:
        return []
    if kind not in ("Exact", "ImplementationSpecific", "Prefix"):
        return [not_supported(f"{where}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))]
    if kind != "ImplementationSpecific" and not text.startswith("/"):
        return [invalid(f"{where}.path", text, "must be an absolute path")]
    return []


class DisruptionRules(Plain):
    """A budget sets `minAvailable` or `maxUnavailable`, not both."""

    def validate(self, new: Object, old: Object | None) -> list[FieldError]:
        spec = new.get("spec") or {}
        if "minAvailable" in spec and "maxUnavailable" in spec:
            return [invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")]
        return []
