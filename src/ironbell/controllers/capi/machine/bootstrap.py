"""The bootstrap data: wait for the provider's Secret, and take its name over. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_phases.go (reconcileBootstrap).
"""

from __future__ import annotations

from ironbell.api.cluster.cluster import Cluster
from ironbell.contract.clusters.bootstrap import BootstrapConfig
from ironbell.contract.conditions.legacy import INFO, legacy_true
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.externals import mirrored_legacy, note_failure, take_over
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason
from ironbell.controllers.capi.machine.observed import Observed


def reconcile(draft: Draft, observed: Observed, cluster: Cluster) -> None:
    """Bring the bootstrap forward. A Machine whose user gave it a Secret has nothing to wait for."""
    external = observed.bootstrap
    if external is None:
        return
    if not external.is_found:
        if not (draft.is_deleting and external.is_missing):
            draft.wait("BootstrapConfigNotFound", str(external))
        return
    draft.bootstrap_problem = take_over(draft, external, cluster)
    if draft.bootstrap_problem:
        draft.wait("BootstrapConfigUnusable", draft.bootstrap_problem)
        return
    config = BootstrapConfig.of(external)
    note_failure(draft, external, config.failure_reason, config.failure_message)
    if draft.spec.bootstrap.data_secret_name is not None:
        _created(draft)
        draft.put_legacy(legacy_true(Legacy.BOOTSTRAP_READY))
        return
    created = config.data_secret_created
    reason = LegacyReason.DELETING if draft.is_deleting else LegacyReason.WAITING_FOR_DATA_SECRET
    draft.put_legacy(mirrored_legacy(external, Legacy.BOOTSTRAP_READY, is_true=created, reason=reason, severity=INFO))
    if external.is_deleting:
        return
    if not created:
        draft.wait("WaitingForBootstrapData", f"{external}: {config.data_secret_created_field} is not true yet")
        return
    if not config.data_secret_name:
        draft.bootstrap_problem = f"{external}: status.dataSecretName is empty"
        draft.wait("BootstrapConfigUnusable", draft.bootstrap_problem)
        return
    bootstrap = replace(draft.spec.bootstrap, data_secret_name=config.data_secret_name)
    draft.spec = replace(draft.spec, bootstrap=bootstrap)
    _created(draft)


def _created(draft: Draft) -> None:
    initialization = replace(draft.status.initialization, bootstrap_data_secret_created=True)
    draft.status = replace(draft.status, initialization=initialization)
