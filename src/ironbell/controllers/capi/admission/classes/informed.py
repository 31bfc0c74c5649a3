"""ClusterClasses as they are written and deleted, with a look at the Clusters made from them.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS
from ironbell.contract.admission_lookups import ACCEPTED, Found, InformedAdmission, ListWanted, Verdict, Wanted
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.classes.use import listed, use_problems, use_warnings
from ironbell.controllers.capi.admission.classes.variables import schema_problems
from ironbell.controllers.capi.admission.topology.against_class import class_key
from ironbell.controllers.capi.topology.variables.schemas import Schemas
from ironbell.kube.decision import Fields

_CLUSTERS = ListWanted(CLUSTER)


def class_admission(schemas: Schemas) -> InformedAdmission:
    """`schemas` reads the schemas of variables."""

    def review(new: Fields | None, old: Fields | None, found: Found) -> Verdict:
        if new is None:
            return _deletion(old or {}, found)
        if not _is_judged(new, old):
            return ACCEPTED
        problems = list(schema_problems(new, schemas))
        if old is None:
            return Verdict(problems)
        clusters = _users(old, found)
        problems += use_problems(new, old, clusters)
        return Verdict(problems, list(use_warnings(new, old, clusters)))

    return InformedAdmission(CLUSTER_CLASS, review, _wanted_to_review, deletions=True)


def _is_judged(new: Fields, old: Fields | None) -> bool:
    """Labels and owners are nobody's business here."""
    return old is None or at(old, "spec") != at(new, "spec")


def _wanted_to_review(new: Fields | None, old: Fields | None) -> Sequence[Wanted]:
    return [_CLUSTERS] if old is not None and (new is None or _is_judged(new, old)) else []


def _users(class_: Fields, found: Found) -> list[Fields]:
    key = (str(at(class_, "metadata", "namespace") or ""), str(at(class_, "metadata", "name") or ""))
    return [cluster for cluster in found.all(_CLUSTERS) if class_key(cluster) == key]


def _deletion(old: Fields, found: Found) -> Verdict:
    users = _users(old, found)
    if not users:
        return ACCEPTED
    return Verdict(
        forbidden=f"ClusterClass cannot be deleted because it is used by Cluster(s) {listed(users)}; delete those first"
    )
