"""Admission that the API server does by itself: the servers toward machines may change annotations, and no more.

Roles speak of whole objects. The embedded API has the same limit in `app.wire_limits`; on other API servers it is a
ValidatingAdmissionPolicy, which needs no webhook and therefore cannot be away.

Source: admissionregistration.k8s.io/v1, ValidatingAdmissionPolicy (Kubernetes 1.30 and later).
"""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.app.components import Role
from ironbell.app.install.options import InstallOptions, Object, Unit, made

_API = "admissionregistration.k8s.io/v1"
NAME = "ironbell-limit-servers"
_KEPT = ("spec", "status", "metadata.labels", "metadata.finalizers", "metadata.ownerReferences")


def policies(options: InstallOptions) -> Iterator[Object]:
    """The policy with its binding, where servers toward machines are installed."""
    units = [unit for unit in options.units if _serves(unit)]
    if not units:
        return
    users = ", ".join(f"'system:serviceaccount:{options.namespace}:{unit.name}'" for unit in units)
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["tinkerbell.org"],
                    "apiVersions": ["*"],
                    "operations": ["UPDATE"],
                    "resources": ["hardware", "workflows"],
                }
            ]
        },
        "matchConditions": [{"name": "by-servers", "expression": f"request.userInfo.username in [{users}]"}],
        "validations": [
            {
                "expression": " && ".join(_is_kept(path) for path in _KEPT),
                "messageExpression": (
                    "request.userInfo.username + ' may change annotations of ' + request.resource.resource + "
                    "' only, not the content of ' + request.name"
                ),
                "reason": "Forbidden",
            }
        ],
    }
    yield made(_API, "ValidatingAdmissionPolicy", NAME, spec=spec)
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    yield made(_API, "ValidatingAdmissionPolicyBinding", NAME, spec=binding)


def _serves(unit: Unit) -> bool:
    return any(component.role is Role.SERVER for component in unit.components)


def _is_kept(path: str) -> str:
    new, old = f"object.{path}", f"oldObject.{path}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
