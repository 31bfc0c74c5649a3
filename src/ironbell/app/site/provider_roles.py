"""Access to the kinds of providers with their own API groups, below `ironbell up`.

Such a provider brings a ClusterRole with the label `cluster.x-k8s.io/aggregate-to-manager: "true"`. One role aggregates
them all, and every account that looks up or writes objects of providers holds it, as with `ironbell install`.

Source: kubernetes-sigs/cluster-api: docs/book/src/developer/providers/contracts/infra-machine.md (RBAC).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ironbell.api.client import Api, PatchType, WriteOptions
from ironbell.api.cluster.names import LABEL_AGGREGATE_TO_MANAGER
from ironbell.api.kind import Collection

ROLE: Final = "ironbell:providers"
_GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = Collection(_GROUP, "v1", "clusterroles", namespaced=False)
_BINDINGS: Final = Collection(_GROUP, "v1", "clusterrolebindings", namespaced=False)
_OPTIONS: Final = WriteOptions(field_manager="ironbell", force=True)


async def give_provider_roles(api: Api, accounts: Iterable[tuple[str, str]]) -> None:
    """Create the role, and grant it to ServiceAccounts (namespace and name), and to no others. Cancellation point.

    Args:
        api: the API as the administrator.
        accounts: the accounts that look up or write objects of providers.
    """
    for where, body in _objects(sorted(accounts)):
        content = msgspec.json.encode(body)
        await api.patch(where, "", ROLE, content, patch_type=PatchType.APPLY, options=_OPTIONS)


def _objects(accounts: Iterable[tuple[str, str]]) -> Iterator[tuple[Collection, dict[str, Any]]]:
    selectors = [{"matchLabels": {LABEL_AGGREGATE_TO_MANAGER: "true"}}]
    role: dict[str, Any] = {"aggregationRule": {"clusterRoleSelectors": selectors}}
    subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": name} for namespace, name in accounts]
    binding = {"roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": ROLE}, "subjects": subjects}
    for where, kind, body in ((_ROLES, "ClusterRole", role), (_BINDINGS, "ClusterRoleBinding", binding)):
        yield where, {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": ROLE}, **body}
