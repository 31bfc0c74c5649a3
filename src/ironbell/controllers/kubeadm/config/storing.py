"""Rendering and storing of bootstrap data: the lock, the Secret and the status are written in this order.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go
(storeBootstrapData).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.meta import to_builtin
from ironbell.base.errors import IronbellError
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.secrets import FORMAT, VALUE, cluster_secret, encoded
from ironbell.contract.clusters.versions import VersionError, parse_version
from ironbell.contract.owners import controller_of, is_controlled_by, owner_reference
from ironbell.controllers.kubeadm.config import lock, status
from ironbell.controllers.kubeadm.config.effects import Render
from ironbell.controllers.kubeadm.config.ignition import IgnitionError
from ironbell.controllers.kubeadm.config.reading import Read
from ironbell.controllers.kubeadm.config.rendering import files
from ironbell.controllers.kubeadm.config.rendering import render as rendering
from ironbell.controllers.kubeadm.config.rendering.files import Contents, FileError
from ironbell.controllers.kubeadm.config.rendering.kubeadm import UnsupportedVersionError
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, Pairs
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.status import ANNOTATION_RENDERED_TOKEN, ConfigDraft, Finding
from ironbell.controllers.kubeadm.config.tokens import TokenError, token_id
from ironbell.kube.decision import Action, Fields, create, patch

MOST_BYTES: Final = (1 << 20) - 64
"""Kubernetes' limit for all values of a Secret, less the value that names the format."""
JOIN_ATTEMPTS: Final = "ironbell.dev/join-attempts"
MOST_ATTEMPTS: Final = 10
UNUSABLE: Final = (FileError, IgnitionError, UnsupportedVersionError, VersionError)
"""Errors that the user has to correct."""


def rendered(read: Read, arguments: Render, pairs: Pairs, contents: Contents) -> str:
    """Render the data. Takes some milliseconds.

    Raises:
        IronbellError: the spec is not valid.
    """
    spec = rendering.with_taint(read.spec) if arguments.role is Role.WORKER else read.spec
    resolved = files.resolved_files(spec, contents, arguments.control_plane_version)
    version = parse_version(arguments.version)
    inputs = Inputs(
        arguments.role,
        spec,
        (version.major, version.minor, version.patch),
        arguments.facts,
        files=[*resolved, *(files.discovery_file(spec) if arguments.role is not Role.INIT else ())],
        users=files.resolved_users(spec, contents),
        pairs=pairs,
        join_attempts=join_attempts(read.config.metadata.annotations, arguments.role),
    )
    data = rendering.bootstrap_data(inputs)
    if (size := len(data.encode("utf-8", "surrogateescape"))) > MOST_BYTES:
        raise FileError(
            f"The bootstrap data have {size} bytes, but a Secret holds at most {MOST_BYTES}. Shorten spec.files."
        )
    return data


def join_attempts(annotations: Mapping[str, str], role: Role) -> int:
    """Return how often a machine tries to join, for networks where the first attempt may fail.

    A KubeadmConfig has an annotation for this; without it the data are upstream's. Only workers retry: a control plane
    machine that failed half-way may be an etcd member already, and the control plane's controller replaces it.
    Upstream had an experimental field for this (`useExperimentalRetryJoin`), which v1beta2 has dropped.

    Raises:
        FileError: the annotation is not a number in the valid range.
    """
    text = annotations.get(JOIN_ATTEMPTS, "1")
    number = decimal(text)
    if number is None or not 1 <= number <= MOST_ATTEMPTS:
        raise FileError(f"annotation {JOIN_ATTEMPTS} {text!r} is not a number from 1 to {MOST_ATTEMPTS}")
    return number if role is Role.WORKER else 1


def stored(read: Read, arguments: Render, data: str, existing: Secret | None, now: datetime) -> Sequence[Action]:
    """Return the writes that store the data, beginning with that of the init lock if it has to be acquired.

    Raises:
        FileError: a Secret of this name belongs to another object.
    """
    config = read.config
    actions: list[Action] = []
    if arguments.acquires_lock:
        cluster = arguments.cluster
        actions.append(lock.acquire(cluster.key, cluster.uid, arguments.machine))
    secret = _write(read, arguments, data, existing)
    if secret is not None:
        actions.append(secret)
    draft = ConfigDraft(config, now)
    findings = (status.available(status.DATA_SECRET), status.available(status.CERTIFICATES))
    draft.report(*findings, data_secret=config.metadata.name)
    change = draft.status_write()
    return [*actions, change] if change is not None else actions


def rejected(config: KubeadmConfig, finding: Finding, error: IronbellError, now: datetime) -> Sequence[Action]:
    """Return the write that reports why the data cannot be created.

    Raises:
        IronbellError: this was reported before; the effect is retried with backoff.
    """
    draft = ConfigDraft(config, now)
    draft.report(finding)
    change = draft.status_write()
    if change is None:
        raise error
    return [change]


def _write(read: Read, arguments: Render, data: str, existing: Secret | None) -> Action | None:
    config = read.config
    owner = owner_reference(KUBEADM_CONFIG, config, controller=True, block=False)
    values = {VALUE: data.encode(), FORMAT: (read.spec.get("format") or rendering.CLOUD_CONFIG).encode()}
    body = cluster_secret(arguments.cluster.key, config.metadata.name, values, owner)
    if token := _token(read):
        body["metadata"]["annotations"] = {ANNOTATION_RENDERED_TOKEN: token}
    if existing is None:
        return create(SECRET, body)
    if controller_of(existing) is not None and not is_controlled_by(existing, KUBEADM_CONFIG, config):
        raise FileError(
            f"Secret {config.metadata.name} belongs to another object. Rename the KubeadmConfig, or delete the Secret."
        )
    change: Fields = {}
    if existing.data != encoded(values):
        change["data"] = encoded(values)
    metadata = body["metadata"]
    metadata.pop("namespace")
    metadata.pop("name")
    if not _has(existing, metadata):
        change["metadata"] = metadata
    return patch(SECRET, existing, change, locked=True) if change else None


def _has(existing: Secret, metadata: Fields) -> bool:
    held = existing.metadata
    annotations: dict[str, str] = metadata.get("annotations", {})
    is_labelled = held.labels.get(LABEL_CLUSTER_NAME) == metadata["labels"][LABEL_CLUSTER_NAME]
    is_owned = to_builtin(held.owner_references) == metadata["ownerReferences"]
    return bool(is_labelled and is_owned and annotations.items() <= held.annotations.items())


def _token(read: Read) -> str:
    """Return the public part of the token in the data; empty if there is none."""
    try:
        return token_id(read.config.spec.join_configuration.discovery.bootstrap_token.token)
    except TokenError:
        return ""
