"""Eviction of a simulated cluster's pods, which honours disruption budgets.

A budget is computed at each eviction: no controller maintains its status.

Source: kubernetes/kubernetes: pkg/registry/core/pod/storage/eviction.go, pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import Api, TooManyRequests
from ironbell.api.kind import Collection
from ironbell.apiserver.request import Request
from ironbell.apiserver.selectors.labels import LabelSelector
from ironbell.apiserver.subresources import Action

PODS = Collection("", "v1", "pods", namespaced=True)
BUDGETS = Collection("policy", "v1", "poddisruptionbudgets", namespaced=True)


def eviction(api: Api) -> Action:
    """The action behind `pods/NAME/eviction`."""

    async def perform(request: Request, body: bytes) -> bytes:
        pod = msgspec.json.decode(await api.get(PODS, request.namespace, request.name))
        if not _is_terminated(pod):
            await _require_budgets(api, request.namespace, pod)
        await api.delete(PODS, request.namespace, request.name)
        return msgspec.json.encode({"apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201})

    return Action("policy", "v1", "Eviction", perform)


async def _require_budgets(api: Api, namespace: str, pod: dict[str, Any]) -> None:
    pods = [msgspec.json.decode(body) for body in (await api.list(PODS, namespace)).items]
    for body in (await api.list(BUDGETS, namespace)).items:
        budget = msgspec.json.decode(body)
        selector = msgspec.convert(budget["spec"].get("selector") or {}, LabelSelector)
        covered = [other for other in pods if selector.matches(other["metadata"].get("labels") or {})]
        if not any(other["metadata"]["uid"] == pod["metadata"]["uid"] for other in covered):
            continue
        healthy = sum(_is_healthy(other) for other in covered)
        needed = _least_healthy(budget["spec"], len(covered))
        if _is_healthy(pod) and healthy - 1 < needed:
            name = budget["metadata"]["name"]
            raise TooManyRequests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={
                    "causes": [
                        {
                            "reason": "DisruptionBudget",
                            "message": f"The disruption budget {name} needs {needed} "
                            f"healthy pods and has {healthy} currently",
                        }
                    ]
                },
            )


def _least_healthy(spec: dict[str, Any], count: int) -> int:
    """Number of pods that must stay healthy."""
    if "maxUnavailable" in spec:
        return count - _resolve(spec["maxUnavailable"], count)
    return _resolve(spec.get("minAvailable", 0), count)


def _resolve(value: int | str, count: int) -> int:
    """Resolve a number or a percentage, which is rounded up."""
    if isinstance(value, int):
        return value
    return -(-int(value.removesuffix("%")) * count // 100)


def _is_terminated(pod: dict[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")


def _is_healthy(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
