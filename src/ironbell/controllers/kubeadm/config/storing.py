"""Bootstrap data made and stored: the lock, the Secret and the status, in this order.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/kubeadmconfig_controller.go
(storeBootstrapData).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.meta import to_builtin
from ironbell.base.errors import IronbellError
from ironbell.contract.clusters.secrets import FORMAT, VALUE, cluster_secret, encoded
from ironbell.contract.clusters.versions import VersionError, parse_version
from ironbell.contract.owners import controller_of, is_controlled_by, owner_reference
from ironbell.controllers.kubeadm.config import lock, status
from ironbell.controllers.kubeadm.config.effects import Render
from ironbell.controllers.kubeadm.config.ignition import IgnitionError
from ironbell.controllers.kubeadm.config.names import ANNOTATION_RENDERED_TOKEN
from ironbell.controllers.kubeadm.config.reading import Read
from ironbell.controllers.kubeadm.config.rendering import files
from ironbell.controllers.kubeadm.config.rendering import render as rendering
from ironbell.controllers.kubeadm.config.rendering.files import Contents, FileError
from ironbell.controllers.kubeadm.config.rendering.kubeadm import UnsupportedVersionError
from ironbell.controllers.kubeadm.config.rendering.render import Inputs, Pairs
from ironbell.controllers.kubeadm.config.rendering.retries import join_attempts
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.status import ConfigDraft, Finding
from ironbell.controllers.kubeadm.config.tokens import TokenError, token_id
from ironbell.kube.decision import Action, Fields, create, patch

MOST_BYTES: Final = (1 << 20) - 64
"""Kubernetes' limit for all values of a Secret, of which another says the format."""
UNUSABLE: Final = (FileError, IgnitionError, UnsupportedVersionError, VersionError)
"""What a user has to put right."""


def rendered(read: Read, arguments: Render, pairs: Pairs, contents: Contents) -> str:
    """The data. Takes some milliseconds.

    Raises:
        IronbellError: they cannot be made of what the spec says.
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
            f"the bootstrap data have {size} bytes, a Secret holds {MOST_BYTES} of them: shorten spec.files"
        )
    return data


def stored(read: Read, arguments: Render, data: str, existing: Secret | None, now: datetime) -> Sequence[Action]:
    """The writes that store data: the init lock first, where it is still to be taken.

    Raises:
        FileError: a Secret of this name belongs to something else.
    """
    config = read.config
    actions: list[Action] = []
    if arguments.takes_lock:
        cluster = arguments.cluster
        actions.append(lock.take(cluster.key, cluster.uid, arguments.machine))
    secret = _write(read, arguments, data, existing)
    if secret is not None:
        actions.append(secret)
    draft = ConfigDraft(config, now)
    findings = (status.available(status.DATA_SECRET), status.available(status.CERTIFICATES))
    draft.report(*findings, data_secret=config.metadata.name)
    change = draft.status_write()
    return [*actions, change] if change is not None else actions


def refused(config: KubeadmConfig, finding: Finding, error: IronbellError, now: datetime) -> Sequence[Action]:
    """The write that tells why there are no data.

    Raises:
        IronbellError: that was told already; it is tried again with backoff.
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
            f"Secret {config.metadata.name} belongs to something else; rename the KubeadmConfig or delete it"
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
    """The public part of the token in the data; empty where there is none."""
    try:
        return token_id(read.config.spec.join_configuration.discovery.bootstrap_token.token)
    except TokenError:
        return ""
