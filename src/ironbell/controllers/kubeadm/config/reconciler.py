"""The controller of KubeadmConfigs (CABPK): it creates the bootstrap data of each Machine, once.

Existing data are never replaced, except those of a MachinePool, whose machines join at any time. A host uses the data
that the Secret contained when the host read it.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.owners import controller_of, group_of, owner_reference, owners_patch, with_owner
from ironbell.controllers.kubeadm.config import creating, status, upkeep
from ironbell.controllers.kubeadm.config.observed import INDEXES, WATCHES, Observed, Scene, observe
from ironbell.controllers.kubeadm.config.status import ConfigDraft, Reason
from ironbell.controllers.kubeadm.config.tokens import Lifetime
from ironbell.kube.decision import Action, Decision, Key, emit
from ironbell.kube.reconciler import Cache, Declaration


class KubeadmConfigReconciler:
    """Creates the data of a KubeadmConfig, and renews its token until the machine is a node."""

    name = "kubeadm-config"
    declaration = Declaration(KUBEADM_CONFIG, watches=WATCHES, indexes=INDEXES)

    def __init__(self, lifetime: Lifetime | None = None) -> None:
        self._lifetime = lifetime or Lifetime()

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observe(cache, key, self._lifetime)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConfigDraft(observed.config, now)
        if observed.owner is None:
            draft.wait(Reason.NO_OWNER, "No Machine or MachinePool owns the KubeadmConfig yet.")
        elif observed.cluster is None:
            name = f"{observed.config.metadata.namespace}/{observed.owner.cluster}"
            draft.wait(Reason.NO_CLUSTER, f"Cluster {name} does not exist.")
        else:
            self._decide(draft, Scene(observed, observed.owner, observed.cluster))
        return draft.decision()

    def _decide(self, draft: ConfigDraft, scene: Scene) -> None:
        observed, owner, config = scene.observed, scene.owner, scene.observed.config
        cluster_paused = bool(scene.cluster.spec.paused)
        if is_paused(config, cluster_paused=cluster_paused):
            draft.put(paused_condition(KUBEADM_CONFIG.kind, config, cluster_paused=cluster_paused))
            draft.wait(Reason.PAUSED, "The KubeadmConfig or its Cluster is paused.")
            return
        draft.first += _owner_repair(observed)
        if not scene.cluster.status.initialization.infrastructure_provisioned:
            message = "The Cluster's infrastructure is not provisioned yet."
            draft.wait_for(Reason.NO_INFRASTRUCTURE, message, status.waiting_for_infrastructure())
        elif owner.data_secret_name is not None and not (observed.created and config.status.data_secret_name):
            # after a move or a restore, which do not keep the status
            findings = (status.available(status.DATA_SECRET), status.available(status.CERTIFICATES))
            draft.report(*findings, data_secret=owner.data_secret_name)
        elif observed.created:
            upkeep.reconcile(draft, scene, self._lifetime)
        else:
            creating.reconcile(draft, scene)


def _owner_repair(observed: Observed) -> list[Action]:
    """Make the KubeadmConfig own the data's Secret, also after a restore changed its UID, so that both are deleted."""
    config, secret = observed.config, observed.data_secret
    if secret is None:
        return []
    controller = controller_of(secret)
    if controller is not None and (group_of(controller.api_version), controller.kind) != (
        KUBEADM_CONFIG.group,
        KUBEADM_CONFIG.kind,
    ):
        message = (
            f"Left Secret {secret.metadata.name} unchanged: it is controlled by {controller.kind} {controller.name}."
        )
        return [emit(KUBEADM_CONFIG, config, reason="SecretOfAnother", message=message, warning=True)]
    reference = owner_reference(KUBEADM_CONFIG, config, controller=True, block=False)
    change = owners_patch(SECRET_METADATA, secret, with_owner(secret.metadata.owner_references, reference))
    return [change] if change is not None else []
