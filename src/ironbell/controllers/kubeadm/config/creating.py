"""The steps from a Machine to its bootstrap data, to initialize a control plane or to join one.

An effect is started only when all prerequisites that the caches show are met. For a machine that joins, the order is:
discovery is written into the spec (with a new token), the token's Secret is created in the workload cluster, and the
data are rendered and stored.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.clusters.secrets import secret_name as cluster_secret_name
from ironbell.controllers.kubeadm.config import status
from ironbell.controllers.kubeadm.config.effects import (
    CREATE_CERTIFICATES,
    DISCOVER,
    KEEP_TOKEN,
    KEEP_TOKEN_TIMEOUT_S,
    RENDER,
    CreateCertificates,
    Discover,
    KeepToken,
    Render,
)
from ironbell.controllers.kubeadm.config.observed import Scene, facts_of, role_of, token_query
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.status import ConfigDraft, Reason
from ironbell.kube.decision import Effect, Need, delete
from ironbell.workload.queries import PUSHED_S, Connection

RENDER_TIMEOUT_S: Final = 60.0
CERTIFICATES_TIMEOUT_S: Final = 120.0
"""Several RSA keys of 4096 bits on a busy machine."""


def reconcile(draft: ConfigDraft, scene: Scene) -> None:
    """Draft the next step towards the data."""
    if role_of(scene.observed, scene.owner) is Role.INIT:
        _initialize(draft, scene)
    elif not scene.observed.initialized:
        message = "Waiting for Cluster control plane to be initialized"
        draft.wait_for(Reason.NOT_INITIALIZED, message, status.waiting_for_control_plane(message))
    else:
        _join(draft, scene)


def _initialize(draft: ConfigDraft, scene: Scene) -> None:
    lock = scene.observed.lock
    if lock is not None and lock.holder != scene.owner.name:
        if not lock.holder_exists:
            draft.owned.append(delete(CONFIG_MAP, lock.config_map))
            return
        message = f"Waiting for Machine {lock.holder}, which initializes the control plane"
        draft.wait_for(Reason.LOCKED, message, status.waiting_for_control_plane(message))
    elif _is_ready(draft, scene, creates_certificates=True):
        draft.last.append(render(scene, Role.INIT, acquires_lock=lock is None))


def _join(draft: ConfigDraft, scene: Scene) -> None:
    role = role_of(scene.observed, scene.owner)
    discovery = scene.observed.config.spec.join_configuration.discovery
    if role is Role.WORKER and scene.observed.config.spec.join_configuration.control_plane is not None:
        message = (
            "spec.joinConfiguration.controlPlane is set, but the Machine is not a control plane Machine; remove it"
        )
        draft.wait_for(Reason.FAILED, message, status.not_generated(message))
        return
    if not _is_ready(draft, scene, creates_certificates=False):
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
    """Return the effect that makes the workload cluster accept the spec's token; `is_new` if it was just generated."""
    query = token_query(scene.observed.config, scene.cluster)
    return Effect(
        KEEP_TOKEN,
        KeepToken(scene.observed.config_key, scene.cluster_key, is_new=is_new),
        timeout_s=KEEP_TOKEN_TIMEOUT_S,
        outdates=(query,) if query is not None else (),
    )


def render(scene: Scene, role: Role, *, acquires_lock: bool = False, again: bool = False) -> Effect:
    """Return the effect that renders and stores the data; `again` if they were rendered before."""
    owner, observed = scene.owner, scene.observed
    arguments = Render(
        observed.config_key,
        scene.cluster_key,
        role,
        owner.name,
        owner.version,
        facts_of(scene.cluster, owner.version),
        observed.control_plane_version,
        acquires_lock=acquires_lock,
        again=again,
    )
    return Effect(RENDER, arguments, timeout_s=RENDER_TIMEOUT_S)


def _is_undiscovered(scene: Scene, role: Role) -> bool:
    """Return whether the spec lacks fields of the discovery."""
    join = scene.observed.config.spec.join_configuration
    if role is Role.CONTROL_PLANE and join.control_plane is None:
        return True
    if join.discovery.file.kube_config_path:
        kubeconfig = join.discovery.file.kube_config
        is_given = bool(kubeconfig.user.exec.command or kubeconfig.user.auth_provider.name)
        return is_given and not (kubeconfig.cluster.server and kubeconfig.cluster.certificate_authority_data)
    token = join.discovery.bootstrap_token
    return not (token.token and token.api_server_endpoint and token.ca_cert_hashes)


def _is_ready(draft: ConfigDraft, scene: Scene, *, creates_certificates: bool) -> bool:
    """Return whether all prerequisites of the data exist; otherwise record the first missing one."""
    observed = scene.observed
    if observed.missing_pairs:
        _await_certificates(draft, scene, creates_certificates=creates_certificates)
    elif observed.missing_references:
        message = "; ".join(observed.missing_references)
        draft.wait_for(Reason.MISSING_REFERENCE, message, status.not_generated(message))
    elif observed.control_plane_problem:
        message = f"A template in spec.files needs the control plane's version: {observed.control_plane_problem}"
        draft.wait_for(Reason.NO_VERSION, message, status.not_generated(message))
    else:
        return True
    return False


def _await_certificates(draft: ConfigDraft, scene: Scene, *, creates_certificates: bool) -> None:
    observed, missing = scene.observed, scene.observed.missing_pairs
    generated = tuple(purpose for purpose in missing if _is_generated(scene, purpose))
    if creates_certificates and not scene.cluster.spec.control_plane_ref.name and len(generated) == len(missing):
        configuration = observed.config.spec.cluster_configuration
        arguments = CreateCertificates(
            observed.config_key,
            scene.cluster_key,
            generated,
            configuration.encryption_algorithm,
            configuration.ca_certificate_validity_period_days,
        )
        draft.last.append(Effect(CREATE_CERTIFICATES, arguments, timeout_s=CERTIFICATES_TIMEOUT_S))
        return
    names = ", ".join(cluster_secret_name(scene.cluster.metadata.name, purpose) for purpose in missing)
    remedy = "create them" if len(generated) < len(missing) else "the control plane's controller creates them"
    message = f"Waiting for Secrets {names}: {remedy}"
    draft.wait_for(
        Reason.NO_CERTIFICATES, message, status.certificates_missing(message, creates_certificates=creates_certificates)
    )


def _is_generated(scene: Scene, purpose: Purpose) -> bool:
    """Return whether the controller generates a key pair. The pairs of an external etcd are supplied by the user."""
    is_external = bool(scene.observed.config.spec.cluster_configuration.etcd.external.endpoints)
    return purpose is not Purpose.API_SERVER_ETCD_CLIENT and not (is_external and purpose is Purpose.ETCD_CA)
