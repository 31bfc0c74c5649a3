"""After the data were made: the token lives until the machine is a node, and a failed host is told.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go
(refreshBootstrapTokenIfNeeded, rotateMachinePoolBootstrapToken).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.kubeadm.config import making, status
from ironbell.controllers.kubeadm.config.effects import DISCOVER, Discover
from ironbell.controllers.kubeadm.config.names import ANNOTATION_RENDERED_TOKEN, Reason
from ironbell.controllers.kubeadm.config.observed import Scene, role_of, token_question
from ironbell.controllers.kubeadm.config.status import Saying
from ironbell.controllers.kubeadm.config.tokens import Lifetime, TokenOf
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Decision, Delete, Effect, Need, Waiting, delete, do, emit


def kept(scene: Scene, now: datetime, lifetime: Lifetime) -> Decision:
    """What there is to look after."""
    config = scene.observed.config
    said = status.stated(config, _sayings(scene), now, without=_withdrawn(scene))
    actions: list[Action | None] = [_release(scene), status.change(config, said)]
    question = token_question(config, scene.cluster)
    if question is None or (scene.owner.has_nodes and not scene.owner.is_pool):
        return do(*actions)
    waiting = Waiting(Reason.NODE, "the data are ready; the machine is no node yet")
    if scene.observed.failure:
        waiting = Waiting(Reason.BOOTSTRAP_FAILED, scene.observed.failure)
    actions += _token(scene, question, now, lifetime)
    fresh_s = _fresh_s(scene, now, lifetime)
    if fresh_s > 0:
        return do(*actions, waiting=waiting, requeue_after_s=fresh_s)
    need = Need(question, lifetime.look_every_s)
    return do(*actions, needs=[need], waiting=None if scene.owner.has_nodes else waiting)


def _fresh_s(scene: Scene, now: datetime, lifetime: Lifetime) -> float:
    """How long nobody need ask the cluster for the token: it was made right before the data were."""
    secret = scene.observed.data_secret
    if scene.owner.is_pool or scene.observed.token is not None or secret is None:
        return 0.0
    made = secret.metadata.creation_timestamp
    return lifetime.look_every_s - (now - parse_rfc3339(made)).total_seconds() if made else 0.0


def _token(scene: Scene, question: TokenOf, now: datetime, lifetime: Lifetime) -> Sequence[Action]:
    """Give the token more time, make it again, or (for a pool that is complete) make another."""
    if scene.owner.is_pool and _rendered_token(scene) not in ("", question.token_id):
        # a token was made and the data still hold the one before
        return [making.keep_token(scene), making.render(scene, role_of(scene.observed, scene.owner), again=True)]
    fact = scene.observed.token
    if fact is None or fact.value is None or not fact.fresh(now, lifetime.look_every_s):
        return []
    if scene.owner.is_pool and scene.owner.has_nodes:
        if not lifetime.is_past_half(fact.value, now):
            return []
        role = role_of(scene.observed, scene.owner)
        arguments = Discover(scene.observed.config_key, scene.cluster_key, scene.endpoint, role, new_token=True)
        return [Effect(DISCOVER, arguments)]
    if not lifetime.is_short(fact.value, now):
        return []
    keep = making.keep_token(scene, is_new=not fact.value.exists)
    if fact.value.exists:
        return [keep]
    message = "the bootstrap token was gone from the workload cluster before the machine joined; made it again"
    return [keep, emit(KUBEADM_CONFIG, scene.observed.config, reason="BootstrapTokenRecreated", message=message)]


def _rendered_token(scene: Scene) -> str:
    secret = scene.observed.data_secret
    return secret.metadata.annotations.get(ANNOTATION_RENDERED_TOKEN, "") if secret is not None else ""


def _release(scene: Scene) -> Delete | None:
    """Give the init lock back when there is something to join."""
    lock = scene.observed.lock
    return delete(CONFIG_MAP, lock.config_map) if lock is not None and scene.observed.initialized else None


def _sayings(scene: Scene) -> Sequence[Saying]:
    sayings = [status.available(status.DATA_SECRET), status.available(status.CERTIFICATES)]
    if scene.observed.failure:
        sayings.append(status.bootstrap_failed(scene.observed.failure))
    elif _has_failed(scene) and scene.owner.has_nodes:
        sayings.append(status.bootstrap_succeeded())
    return sayings


def _withdrawn(scene: Scene) -> Sequence[str]:
    """Conditions that nobody says any more: a failed host that tries again."""
    is_withdrawn = _has_failed(scene) and not scene.observed.failure and not scene.owner.has_nodes
    return [status.BOOTSTRAP] if is_withdrawn else []


def _has_failed(scene: Scene) -> bool:
    return find_condition(scene.observed.config.status.conditions, status.BOOTSTRAP) is not None
