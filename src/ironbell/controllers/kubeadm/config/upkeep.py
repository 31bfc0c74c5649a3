"""The steps after the data exist: renew the token until the machine is a node, and report a failed bootstrap.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go
(refreshBootstrapTokenIfNeeded, rotateMachinePoolBootstrapToken).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.kubeadm.config import creating, status
from ironbell.controllers.kubeadm.config.effects import DISCOVER, Discover
from ironbell.controllers.kubeadm.config.observed import Scene, role_of, token_query
from ironbell.controllers.kubeadm.config.status import ANNOTATION_RENDERED_TOKEN, ConfigDraft, Finding, Reason
from ironbell.controllers.kubeadm.config.tokens import Lifetime, TokenOf
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Effect, Need, delete, emit


def reconcile(draft: ConfigDraft, scene: Scene, lifetime: Lifetime) -> None:
    """Draft the renewal of the token, the release of the init lock, and the report of a failed bootstrap."""
    lock, now = scene.observed.lock, draft.now
    if lock is not None and scene.observed.initialized:
        draft.owned.append(delete(CONFIG_MAP, lock.config_map))
    draft.drop_both(*_withdrawn(scene))
    draft.report(*_findings(scene))
    query = token_query(scene.observed.config, scene.cluster)
    if query is None or (scene.owner.has_nodes and not scene.owner.is_pool):
        return
    draft.last += _token(scene, query, now, lifetime)
    fresh_s = _fresh_s(scene, now, lifetime)
    if fresh_s > 0:
        draft.requeue_after(fresh_s)
    else:
        draft.need(Need(query, lifetime.check_interval_s))
        if scene.owner.has_nodes:
            return
    if scene.observed.failure:
        draft.wait(Reason.BOOTSTRAP_FAILED, scene.observed.failure)
    draft.wait(Reason.NODE, "Waiting for the machine to become a node.")


def _fresh_s(scene: Scene, now: datetime, lifetime: Lifetime) -> float:
    """Return how long the token need not be queried, because it was created right before the data."""
    secret = scene.observed.data_secret
    if scene.owner.is_pool or scene.observed.token is not None or secret is None:
        return 0.0
    created = secret.metadata.creation_timestamp
    return lifetime.check_interval_s - (now - parse_rfc3339(created)).total_seconds() if created else 0.0


def _token(scene: Scene, query: TokenOf, now: datetime, lifetime: Lifetime) -> Sequence[Action]:
    """Return the actions that extend the token, create its Secret again, or (for a complete pool) replace the token."""
    if scene.owner.is_pool and _rendered_token(scene) not in ("", query.token_id):
        # a new token was generated, and the data still contain the previous one
        return [creating.keep_token(scene), creating.render(scene, role_of(scene.observed, scene.owner), again=True)]
    fact = scene.observed.token
    if fact is None or fact.value is None or not fact.fresh(now, lifetime.check_interval_s):
        return []
    if scene.owner.is_pool and scene.owner.has_nodes:
        if not lifetime.is_past_half(fact.value, now):
            return []
        role = role_of(scene.observed, scene.owner)
        arguments = Discover(scene.observed.config_key, scene.cluster_key, scene.endpoint, role, new_token=True)
        return [Effect(DISCOVER, arguments)]
    if not lifetime.is_short(fact.value, now):
        return []
    keep = creating.keep_token(scene, is_new=not fact.value.exists)
    if fact.value.exists:
        return [keep]
    message = "Created the bootstrap token again: it was deleted from the workload cluster before the machine joined."
    return [keep, emit(KUBEADM_CONFIG, scene.observed.config, reason="BootstrapTokenRecreated", message=message)]


def _rendered_token(scene: Scene) -> str:
    secret = scene.observed.data_secret
    return secret.metadata.annotations.get(ANNOTATION_RENDERED_TOKEN, "") if secret is not None else ""


def _findings(scene: Scene) -> Sequence[Finding]:
    findings = [status.available(status.DATA_SECRET), status.available(status.CERTIFICATES)]
    if scene.observed.failure:
        findings.append(status.bootstrap_failed(scene.observed.failure))
    elif _has_failed(scene) and scene.owner.has_nodes:
        findings.append(status.bootstrap_succeeded())
    return findings


def _withdrawn(scene: Scene) -> Sequence[str]:
    """Return the conditions to remove, when a host that failed starts again."""
    is_withdrawn = _has_failed(scene) and not scene.observed.failure and not scene.owner.has_nodes
    return [status.BOOTSTRAP] if is_withdrawn else []


def _has_failed(scene: Scene) -> bool:
    return find_condition(scene.observed.config.status.conditions, status.BOOTSTRAP) is not None
