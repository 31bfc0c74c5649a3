"""A controller that looks up what its objects name, for tests of kinds that are known only at run time.

Its objects are ConfigMaps with a `kind` and a `name` in their data; what it sees it writes into the annotation `saw`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ironbell.api.core import CONFIG_MAP, ConfigMap
from ironbell.contract.clusters.external import External, State, read_reference
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS, ObjectReference
from ironbell.kube.decision import DONE, Action, Decision, Fields, Key, create, do, patch, wait
from ironbell.kube.reconciler import Cache, Declaration, DynamicWatch

GROUP = "infrastructure.cluster.x-k8s.io"


def follower_body(name: str, kind: str, target: str, **data: str) -> Fields:
    """A ConfigMap that follows an object."""
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"kind": kind, "name": target, **data}}


def definition_body(group: str, *versions: str) -> Fields:
    """The CustomResourceDefinition of servers; the last version is stored."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {
            "name": f"servers.{group}",
            "labels": {f"cluster.x-k8s.io/{version}": version for version in versions},
        },
        "spec": {
            "group": group,
            "names": {"plural": "servers", "singular": "server", "kind": "Server", "listKind": "ServerList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[-1],
                    "schema": {"openAPIV3Schema": schema},
                }
                for version in versions
            ],
        },
    }


@dataclass(frozen=True)
class Followed:
    follower: ConfigMap
    external: External


class FollowerReconciler:
    """Tells on every ConfigMap that follows something what became of that; makes it where `make` is set."""

    name = "follower"

    def __init__(self, dynamic: Sequence[DynamicWatch] = (), *, group: str = GROUP) -> None:
        self.declaration = Declaration(CONFIG_MAP, watches=(DEFINITIONS,), indexes=(BY_GROUP_KIND,), dynamic=dynamic)
        self._group = group
        self.observed: Counter[str] = Counter()
        self.waited: list[str] = []

    def observe(self, cache: Cache, key: Key) -> Followed | None:
        follower = cache.get(CONFIG_MAP, *key)
        if follower is None or "kind" not in follower.data:
            return None
        self.observed[key[1]] += 1
        reference = ObjectReference(self._group, follower.data["kind"], follower.data["name"])
        return Followed(follower, read_reference(cache, reference, key[0]))

    def decide(self, observed: Followed, now: datetime) -> Decision:
        external = observed.external
        if external.state is State.UNKNOWN:
            self.waited.append(str(external))
            return wait("Unknown", str(external))
        actions: list[Action] = []
        if external.is_missing and external.kind is not None and "make" in observed.follower.data:
            metadata = {"name": external.reference.name, "namespace": external.namespace}
            actions.append(create(external.kind, {"metadata": metadata, "spec": {"size": "made"}}))
        saw = _saw(external)
        if observed.follower.metadata.annotations.get("saw") != saw:
            actions.append(patch(CONFIG_MAP, observed.follower, {"metadata": {"annotations": {"saw": saw}}}))
        return do(*actions) if actions else DONE


def _saw(external: External) -> str:
    if external.obj is None:
        return external.state.value
    return f"{external.obj.api_version.rpartition('/')[2]} {external.obj.body.get('spec', {}).get('size', 'none')}"
