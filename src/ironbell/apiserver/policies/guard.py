"""The guard of policies: their writer must be able to read the parameters, since messages can show them.

Source: kubernetes/kubernetes: pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go,
validatingadmissionpolicybinding/authz.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.apiserver import status
from ironbell.apiserver.access.roles import Attributes
from ironbell.apiserver.admission import AdmissionRequest
from ironbell.apiserver.context import Context
from ironbell.apiserver.fielderrors import FieldError, forbidden
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.webhooks.configuration import GROUP

_POLICY_OF = {
    "validatingadmissionpolicybindings": "validatingadmissionpolicies",
    "mutatingadmissionpolicybindings": "mutatingadmissionpolicies",
}
"""The resources of policies, by those of their bindings."""


def is_policy(info: ResourceInfo) -> bool:
    """Return whether writes to a resource put parameters into use."""
    return info.group == GROUP and (info.plural in _POLICY_OF or info.plural in _POLICY_OF.values())


class ParameterGuard:
    """An admission plugin that rejects policies whose parameters the writer may not read."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, request: AdmissionRequest) -> None:
        """Reject a policy or a binding.

        Raises:
            Invalid: the writer may not read the parameters.
        """
        new = request.new
        if new is None or request.subresource or self._context.authorizer.is_master(request.identity):
            return
        spec, old_spec = _spec(new), _spec(request.old)
        if request.info.plural not in _POLICY_OF:
            kind = _mapping(spec.get("paramKind"))
            fault = self._policy_fault(request, kind) if kind and kind != old_spec.get("paramKind") else None
        else:
            ref = _mapping(spec.get("paramRef"))
            same = ref == old_spec.get("paramRef") and spec.get("policyName") == old_spec.get("policyName")
            fault = self._binding_fault(request, spec, ref) if ref and not same else None
        if fault is not None:
            raise status.invalid(request.info, request.name, errors=[fault])

    def _policy_fault(self, request: AdmissionRequest, kind: dict[str, Any]) -> FieldError | None:
        if self._may("get", request, kind, namespace="*", name="*"):
            return None
        detail = 'must have "get" permission on all objects of the referenced paramKind'
        return forbidden("spec.paramKind", _needed(request, detail, kind))

    def _binding_fault(self, request: AdmissionRequest, spec: dict[str, Any], ref: dict[str, Any]) -> FieldError | None:
        resource = f"{_POLICY_OF[request.info.plural]}.{GROUP}"
        policy = self._context.store.latest(resource, ("", str(spec.get("policyName") or "")))
        kind = _mapping(_spec(policy.decode()).get("paramKind")) if policy is not None else {}
        if policy is not None and not kind:
            return None
        name = str(ref.get("name") or "")
        verb = "get" if name else "list"
        if self._may(verb, request, kind, namespace=str(ref.get("namespace") or ""), name=name):
            return None
        return forbidden("spec.paramRef", _needed(request, f'must have "{verb}" permission on the paramRef', kind))

    def _may(self, verb: str, request: AdmissionRequest, kind: dict[str, Any], *, namespace: str, name: str) -> bool:
        """Return whether the writer may read parameters; an unknown kind requires the right to read everything."""
        group, _, version = str(kind.get("apiVersion") or "*/*").rpartition("/")
        info = self._context.resources.by_kind(group, version, str(kind.get("kind") or ""))
        attributes = Attributes(verb, group, info.plural if info is not None else "*", namespace, name)
        return self._context.authorizer.decide(request.identity, attributes).allowed


def _needed(request: AdmissionRequest, usage: str, kind: dict[str, Any]) -> str:
    described = f"kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')}"
    return f'user "{request.identity.user}" {usage} ({described})'


def _spec(value: dict[str, Any] | None) -> dict[str, Any]:
    return _mapping((value or {}).get("spec"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
