"""From a Machine to its bootstrap data: as the first of a control plane, or to join.

Everything that can be waited for is looked at first, in the caches: an effect is started only when nothing is missing
that can be seen. The order for a machine that joins is: discovery is written into the spec (with a new token), the
token's Secret is made in the workload cluster, the data are made and stored.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.clusters.secrets import secret_name as cluster_secret_name
from ironbell.controllers.kubeadm.config import status
from ironbell.controllers.kubeadm.config.effects import (
    DISCOVER,
    KEEP_TOKEN,
    KEEP_TOKEN_TIMEOUT_S,
    MAKE_CERTIFICATES,
    RENDER,
    Discover,
    KeepToken,
    MakeCertificates,
    Render,
)
from ironbell.controllers.kubeadm.config.names import Reason
from ironbell.controllers.kubeadm.config.observed import Scene, facts_of, role_of, token_query
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.status import ConfigDraft
from ironbell.kube.decision import Effect, Need, delete
from ironbell.workload.queries import PUSHED_S, Connection

RENDER_TIMEOUT_S: Final = 60.0
CERTIFICATES_TIMEOUT_S: Final = 120.0
"""Several RSA keys of 4096 bits on a busy machine."""


def reconcile(draft: ConfigDraft, scene: Scene) -> None:
    """Take the next step towards the data."""
    if role_of(scene.observed, scene.owner) is Role.INIT:
        _first(draft, scene)
    elif not scene.observed.initialized:
        message = "Waiting for Cluster control plane to be initialized"
        draft.wait_for(Reason.NOT_INITIALIZED, message, status.waiting_for_control_plane(message))
    else:
        _join(draft, scene)


def _first(draft: ConfigDraft, scene: Scene) -> None:
    lock = scene.observed.lock
    if lock is not None and lock.holder != scene.owner.name:
        if not lock.holder_exists:
            draft.owned.append(delete(CONFIG_MAP, lock.config_map))
            return
        message = f"Waiting for Machine {lock.holder}, which initializes the control plane"
        draft.wait_for(Reason.LOCKED, message, status.waiting_for_control_plane(message))
    elif _is_ready(draft, scene, to_be_made=True):
        draft.last.append(render(scene, Role.INIT, takes_lock=lock is None))


def _join(draft: ConfigDraft, scene: Scene) -> None:
    role = role_of(scene.observed, scene.owner)
    discovery = scene.observed.config.spec.join_configuration.discovery
    if role is Role.WORKER and scene.observed.config.spec.join_configuration.control_plane is not None:
        message = "spec.joinConfiguration.controlPlane is set, but the Machine is no control plane Machine; remove it"
        draft.wait_for(Reason.FAILED, message, status.not_generated(message))
        return
    if not _is_ready(draft, scene, to_be_made=False):
        return
    by_file = bool(discovery.file.kube_config_path)
    if _is_undiscovered(scene, role):
        needs_endpoint = not (
            discovery.file.kube_config.cluster.server if by_file else discovery.bootstrap_token.api_server_endpoint
        )
        if needs_endpoint and not scene.endpoint:
            message = "Waiting for Cluster spec.controlPlaneEndpoint to be set"
            draft.wait_for(Reason.NO_ENDPOINT, message, status.waiting_for_control_plane(message))
            return
        arguments = Discover(scene.observed.config_key, scene.cluster_key, scene.endpoint, role)
        draft.last.append(Effect(DISCOVER, arguments))
    elif by_file:
        draft.last.append(render(scene, role))
    elif _is_connected(draft, scene):
        draft.last += [keep_token(scene, is_new=True), render(scene, role)]


def _is_connected(draft: ConfigDraft, scene: Scene) -> bool:
    draft.need(Need(Connection(scene.cluster_key), PUSHED_S))
    connection = scene.observed.connection
    state = connection.value if connection is not None else None
    if state is not None and state.connected:
        return True
    error = state.error if state is not None else ""
    message = "Waiting for a connection to the workload cluster" + (f": {error}" if error else "")
    draft.wait(Reason.NOT_CONNECTED, message)
    if connection is not None:  # else no connection was attempted yet
        draft.report(status.waiting_for_control_plane(message))
    return False


def keep_token(scene: Scene, *, is_new: bool = False) -> Effect:
    """Have the workload cluster accept the token in the spec; `is_new` where it is not expected to know it."""
    query = token_query(scene.observed.config, scene.cluster)
    return Effect(
        KEEP_TOKEN,
        KeepToken(scene.observed.config_key, scene.cluster_key, is_new=is_new),
        timeout_s=KEEP_TOKEN_TIMEOUT_S,
        outdates=(query,) if query is not None else (),
    )


def render(scene: Scene, role: Role, *, takes_lock: bool = False, again: bool = False) -> Effect:
    """Make the data and store them; `again` although they were made before."""
    owner, observed = scene.owner, scene.observed
    arguments = Render(
        observed.config_key,
        scene.cluster_key,
        role,
        owner.name,
        owner.version,
        facts_of(scene.cluster, owner.version),
        observed.control_plane_version,
        takes_lock=takes_lock,
        again=again,
    )
    return Effect(RENDER, arguments, timeout_s=RENDER_TIMEOUT_S)


def _is_undiscovered(scene: Scene, role: Role) -> bool:
    """Whether something is left to be written into the spec."""
    join = scene.observed.config.spec.join_configuration
    if role is Role.CONTROL_PLANE and join.control_plane is None:
        return True
    if join.discovery.file.kube_config_path:
        kubeconfig = join.discovery.file.kube_config
        is_given = bool(kubeconfig.user.exec.command or kubeconfig.user.auth_provider.name)
        return is_given and not (kubeconfig.cluster.server and kubeconfig.cluster.certificate_authority_data)
    token = join.discovery.bootstrap_token
    return not (token.token and token.api_server_endpoint and token.ca_cert_hashes)


def _is_ready(draft: ConfigDraft, scene: Scene, *, to_be_made: bool) -> bool:
    """Whether nothing is missing that the data depend on; otherwise the first that is missing is recorded."""
    observed = scene.observed
    if observed.missing_pairs:
        _await_certificates(draft, scene, to_be_made=to_be_made)
    elif observed.missing_references:
        message = "; ".join(observed.missing_references)
        draft.wait_for(Reason.MISSING_REFERENCE, message, status.not_generated(message))
    elif observed.control_plane_problem:
        message = f"a template in spec.files needs the control plane's version: {observed.control_plane_problem}"
        draft.wait_for(Reason.NO_VERSION, message, status.not_generated(message))
    else:
        return True
    return False


def _await_certificates(draft: ConfigDraft, scene: Scene, *, to_be_made: bool) -> None:
    observed, missing = scene.observed, scene.observed.missing_pairs
    ours = tuple(purpose for purpose in missing if _is_made_here(scene, purpose))
    if to_be_made and not scene.cluster.spec.control_plane_ref.name and len(ours) == len(missing):
        configuration = observed.config.spec.cluster_configuration
        arguments = MakeCertificates(
            observed.config_key,
            scene.cluster_key,
            ours,
            configuration.encryption_algorithm,
            configuration.ca_certificate_validity_period_days,
        )
        draft.last.append(Effect(MAKE_CERTIFICATES, arguments, timeout_s=CERTIFICATES_TIMEOUT_S))
        return
    names = ", ".join(cluster_secret_name(scene.cluster.metadata.name, purpose) for purpose in missing)
    who = "create them" if len(ours) < len(missing) else "they come with the control plane"
    message = f"Waiting for Secrets {names}: {who}"
    draft.wait_for(Reason.NO_CERTIFICATES, message, status.certificates_missing(message, to_be_made=to_be_made))


def _is_made_here(scene: Scene, purpose: Purpose) -> bool:
    """Whether a key pair is ours to make; with an external etcd its pairs are the user's."""
    is_external = bool(scene.observed.config.spec.cluster_configuration.etcd.external.endpoints)
    return purpose is not Purpose.API_SERVER_ETCD_CLIENT and not (is_external and purpose is Purpose.ETCD_CA)
