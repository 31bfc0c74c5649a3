"""The controller of KubeadmConfigs, also called CABPK: bootstrap data for each Machine, made once.

Data are never made again once they were; but for those of a MachinePool, whose machines come at any time. What a host
has read is what the Secret said then.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.contract.owners import controller_of, group_of, owner_reference, owners_patch, with_owner
from ironbell.contract.paused import is_paused
from ironbell.controllers.kubeadm.config import making, status, upkeep
from ironbell.controllers.kubeadm.config.names import Reason
from ironbell.controllers.kubeadm.config.observed import INDEXES, WATCHES, Observed, Scene, observe
from ironbell.controllers.kubeadm.config.tokens import Lifetime
from ironbell.kube.decision import Action, Decision, Key, do, emit, wait
from ironbell.kube.reconciler import Cache, Declaration


class KubeadmConfigReconciler:
    """Brings a KubeadmConfig to its data, and keeps its token alive until the machine is a node."""

    name = "kubeadm-config"
    declaration = Declaration(KUBEADM_CONFIG, watches=WATCHES, indexes=INDEXES)

    def __init__(self, lifetime: Lifetime | None = None) -> None:
        self._lifetime = lifetime or Lifetime()

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observe(cache, key, self._lifetime)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        config = observed.config
        if observed.owner is None:
            return wait(Reason.NO_OWNER, "no Machine or MachinePool owns it yet")
        if observed.cluster is None:
            return wait(Reason.NO_CLUSTER, f"Cluster {config.metadata.namespace}/{observed.owner.cluster} is not there")
        cluster_paused = bool(observed.cluster.spec.paused)
        if is_paused(config, cluster_paused=cluster_paused):
            said = status.paused(config, cluster_paused=cluster_paused, now=now)
            return wait(Reason.PAUSED, "it or its Cluster is paused", status.change(config, said))
        decision = self._decide(Scene(observed, observed.owner, observed.cluster), now)
        repair = _owner_repair(observed)
        if repair is None:
            return decision
        return Decision((repair, *decision.actions), decision.needs, decision.waiting, decision.requeue_after_s)

    def _decide(self, scene: Scene, now: datetime) -> Decision:
        observed, owner = scene.observed, scene.owner
        config = observed.config
        if not scene.cluster.status.initialization.infrastructure_provisioned:
            said = status.stated(config, [status.waiting_for_infrastructure()], now)
            message = "the Cluster's infrastructure is not provisioned"
            return wait(Reason.NO_INFRASTRUCTURE, message, status.change(config, said))
        if owner.data_secret_name is not None and not (observed.created and config.status.data_secret_name):
            # after a move or a restore, which keep no status
            sayings = [status.available(status.DATA_SECRET), status.available(status.CERTIFICATES)]
            said = status.stated(config, sayings, now, data_secret=owner.data_secret_name)
            return do(status.change(config, said))
        if observed.created:
            return upkeep.kept(scene, now, self._lifetime)
        return making.made(scene, now)


def _owner_repair(observed: Observed) -> Action | None:
    """The data's Secret goes with its KubeadmConfig, after a restore under another uid as well."""
    config, secret = observed.config, observed.data_secret
    if secret is None:
        return None
    controller = controller_of(secret)
    if controller is not None and (group_of(controller.api_version), controller.kind) != (
        KUBEADM_CONFIG.group,
        KUBEADM_CONFIG.kind,
    ):
        message = (
            f"Secret {secret.metadata.name} is controlled by {controller.kind} {controller.name}; it is left alone"
        )
        return emit(KUBEADM_CONFIG, config, reason="SecretOfAnother", message=message, warning=True)
    ours = owner_reference(KUBEADM_CONFIG, config, controller=True, block=False)
    return owners_patch(SECRET_METADATA, secret, with_owner(secret.metadata.owner_references, ours))
