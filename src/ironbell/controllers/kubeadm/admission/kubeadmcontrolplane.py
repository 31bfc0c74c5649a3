"""Admission of KubeadmControlPlanes and their templates.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/webhooks/admission/{kubeadmcontrolplane,
kubeadmcontrolplane_scale,kubeadmcontrolplanetemplate}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.cluster.names import ANNOTATION_SKIP_COREDNS
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE
from ironbell.api.controlplane.kubeadmcontrolplanetemplate import KUBEADM_CONTROL_PLANE_TEMPLATE
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, required, unchanged
from ironbell.contract.clusters.name_templates import RANDOM, NameTemplateError, render_name
from ironbell.contract.clusters.taints import taint_problems
from ironbell.contract.clusters.versions import VersionError, find_version, parse_version
from ironbell.contract.fields import at
from ironbell.contract.pki import AUTHORITY_DAYS
from ironbell.contract.system import KindAdmission
from ironbell.controllers.kubeadm.admission.changes import rejected_changes
from ironbell.controllers.kubeadm.admission.spec import metadata_problems, spec_problems, with_previous_defaults
from ironbell.controllers.kubeadm.controlplane.workload.addons import (
    CorefileError,
    ImageError,
    check_migration,
    tag_version,
)
from ironbell.kube.decision import Fields

_CLUSTER: Final = "kubeadmConfigSpec.clusterConfiguration"
_INVALID_TAG: Final = re.compile(r"[^-a-zA-Z0-9_.]")
_OBJECT_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_ROLLING: Final = "RollingUpdate"


def default(new: Fields, old: Fields | None) -> Fields:
    """Fill in one replica, the `v` of the version, and a rolling update with one additional Machine."""
    spec = dict(new.get("spec") or {})
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    version = str(spec.get("version") or "")
    spec["version"] = version if version.startswith("v") else f"v{version}"
    rollout = spec.get("rollout") or {}
    strategy = rollout.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    surge = rolling.get("maxSurge")
    rolling = {**rolling, "maxSurge": 1 if surge is None else surge}
    spec["rollout"] = {**rollout, "strategy": {**strategy, "type": _ROLLING, "rollingUpdate": rolling}}
    return {**new, "spec": spec}


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a control plane, or of its change."""
    spec: Fields = new.get("spec") or {}
    problems = list(_spec_problems(spec))
    if old is not None:
        problems += [forbidden(".".join(path), "cannot be modified") for path in rejected_changes(old, new)]
        problems += _version_problems(old, new)
    old_cluster = None if old is None else at(old, "spec", "kubeadmConfigSpec", "clusterConfiguration") or {}
    problems += _cluster_problems(
        old_cluster, at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}, f"spec.{_CLUSTER}"
    )
    if old is not None:
        problems += _coredns_problems(old, new)
    config = spec.get("kubeadmConfigSpec") or {}
    return [*problems, *spec_problems(config, "spec.kubeadmConfigSpec", is_control_plane=True)]


def validate_template(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a KubeadmControlPlaneTemplate; its spec never changes."""
    spec: Fields = at(new, "spec", "template", "spec") or {}
    path = "spec.template.spec"
    if old is not None:
        old_spec: Fields = at(old, "spec", "template", "spec") or {}
        if _comparable(old_spec) != _comparable(spec):
            message = (
                "KubeadmControlPlaneTemplate spec.template.spec field is immutable. Please create new resource instead."
            )
            return [forbidden(path, message)]
        return []
    problems = [
        *_rollout_problems(spec, path),
        *_naming_problems(at(spec, "machineNaming", "template"), f"{path}.machineNaming.template"),
        *taint_problems(at(spec, "machineTemplate", "spec", "taints"), f"{path}.machineTemplate.spec.taints"),
        *metadata_problems(at(spec, "machineTemplate", "metadata"), f"{path}.machineTemplate.metadata"),
    ]
    cluster = at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}
    problems += _cluster_problems(None, cluster, f"{path}.{_CLUSTER}")
    config = spec.get("kubeadmConfigSpec") or {}
    problems += spec_problems(config, f"{path}.kubeadmConfigSpec", is_control_plane=True)
    return [*problems, *metadata_problems(at(new, "spec", "template", "metadata"), "spec.template.metadata")]


def _comparable(spec: Fields) -> Fields:
    """Return the spec with the defaults of older versions, so that a manifest without them can be applied again."""
    rollout = spec.get("rollout") or {}
    strategy = rollout.get("strategy") or {"type": _ROLLING, "rollingUpdate": {"maxSurge": 1}}
    config = with_previous_defaults(spec.get("kubeadmConfigSpec") or {})
    return {**spec, "rollout": {**rollout, "strategy": strategy}, "kubeadmConfigSpec": config}


def _spec_problems(spec: Fields) -> Iterator[FieldProblem]:
    replicas = spec.get("replicas")
    if replicas is None:
        yield required("spec.replicas", "is required")
    elif replicas <= 0:
        yield forbidden("spec.replicas", "cannot be less than or equal to 0")
    if replicas is not None and replicas % 2 == 0 and not at(spec, *_CLUSTER.split("."), "etcd", "external"):
        yield forbidden("spec.replicas", "cannot be an even number when etcd is stacked")
    reference = at(spec, "machineTemplate", "spec", "infrastructureRef") or {}
    for name in ("apiGroup", "kind", "name"):
        if not reference.get(name):
            yield invalid(f"spec.machineTemplate.infrastructure.{name}", "", "cannot be empty")
    yield from taint_problems(at(spec, "machineTemplate", "spec", "taints"), "spec.machineTemplate.spec.taints")
    yield from metadata_problems(at(spec, "machineTemplate", "metadata"), "spec.machineTemplate.metadata")
    version = str(spec.get("version") or "")
    if not version.startswith("v"):
        yield invalid("spec.version", version, "must start with v")
    try:
        complete = parse_version(version)
    except VersionError:
        complete = None
    if complete is None or version.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0].count(".") != 2:
        yield invalid("spec.version", version, "must be a valid semantic version")
    yield from _rollout_problems(spec, "spec")
    yield from _naming_problems(at(spec, "machineNaming", "template"), "spec.machineNaming.template")


def _rollout_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    strategy = at(spec, "rollout", "strategy")
    if not strategy:
        return
    where = f"{path}.rollout.strategy"
    if strategy.get("type") != _ROLLING:
        yield required(f"{where}.type", "only RollingUpdate is supported")
    surge = at(strategy, "rollingUpdate", "maxSurge")
    replicas = spec.get("replicas")
    if surge is not None and str(surge) == "0" and replicas is not None and replicas < 3:
        detail = "when KubeadmControlPlane is configured to scale-in, replica count needs to be at least 3"
        yield required(f"{where}.rollingUpdate", detail)
    if surge is not None and str(surge) not in ("0", "1"):
        yield required(f"{where}.rollingUpdate.maxSurge", "value must be 1 or 0")
    yield from _validity_problems(spec, path)


def _validity_problems(spec: Fields, path: str) -> Iterator[FieldProblem]:
    cluster = at(spec, "kubeadmConfigSpec", "clusterConfiguration") or {}
    days, authority = cluster.get("certificateValidityPeriodDays"), cluster.get("caCertificateValidityPeriodDays")
    if not days:
        return
    where = f"{path}.{_CLUSTER}.certificateValidityPeriodDays"
    if authority and days > authority:
        yield invalid(where, days, f"must be less than or equal to caCertificateValidityPeriodDays ({authority})")
    elif not authority and days > AUTHORITY_DAYS:
        rule = f"must be less than or equal to the default value of caCertificateValidityPeriodDays ({AUTHORITY_DAYS})"
        yield invalid(where, days, rule)
    expiry = at(spec, "rollout", "before", "certificatesExpiryDays")
    if expiry and expiry >= days:
        rule = f"must be less than certificateValidityPeriodDays ({days})"
        yield invalid(f"{path}.rollout.before.certificatesExpiryDays", expiry, rule)


def _naming_problems(template: Any, path: str) -> Iterator[FieldProblem]:
    if not template:
        return
    if RANDOM not in template:
        yield invalid(path, template, f"invalid template, {RANDOM} is missing")
    try:
        name = render_name(template, "cluster", "xxxxx", {"kubeadmControlPlane": {"name": "kubeadmcontrolplane"}})
    except NameTemplateError as error:
        yield invalid(path, template, f"invalid template: {error.message}")
        return
    if not _OBJECT_NAME.fullmatch(name):
        rule = "must consist of lower case letters, digits, '-' or '.', with a letter or digit at both ends"
        yield invalid(
            path, template, f"invalid template, generated names would not be valid Kubernetes object names: {rule}"
        )


def _cluster_problems(old: Fields | None, new: Fields, path: str) -> Iterator[FieldProblem]:
    tag = str(at(new, "dns", "imageTag") or "")
    if _INVALID_TAG.search(tag):
        yield forbidden(f"{path}.dns.imageTag", f"tag {tag} is invalid")
    if tag:
        try:
            tag_version(tag)
        except ImageError as error:
            yield invalid("dns.imageTag", tag, f"failed to parse CoreDNS version: {error.message}")
    local, external = at(new, "etcd", "local"), at(new, "etcd", "external")
    etcd_tag = str(at(local, "imageTag") or "")
    if _INVALID_TAG.search(etcd_tag):
        yield forbidden(f"{path}.etcd.local.imageTag", f"tag {etcd_tag} is invalid")
    if local and external:
        yield forbidden(f"{path}.etcd.local", "cannot have both external and local etcd")
    if old is not None and bool(external) != bool(at(old, "etcd", "external")):
        yield forbidden(f"{path}.etcd.external", "cannot change between external and local etcd")


def _version_problems(old: Fields, new: Fields) -> Iterator[FieldProblem]:
    """Yield a problem if the update skips a minor version. As upstream, this does not reject a downgrade."""
    old_version, new_version = (str(at(obj, "spec", "version") or "") for obj in (old, new))
    current, desired = find_version(old_version), find_version(new_version)
    if current is None or desired is None:
        return
    if (desired.major, desired.minor) >= (current.major, current.minor + 2):
        yield forbidden("spec.version", f"cannot update Kubernetes version from {old_version} to {new_version}")


def _coredns_problems(old: Fields, new: Fields) -> Iterator[FieldProblem]:
    path = ("spec", *_CLUSTER.split("."), "dns", "imageTag")
    old_tag, new_tag = (str(at(obj, *path) or "") for obj in (old, new))
    if not old_tag or not new_tag or ANNOTATION_SKIP_COREDNS in (at(new, "metadata", "annotations") or {}):
        return
    try:
        current, desired = tag_version(old_tag), tag_version(new_tag)
        if desired < current:
            raise CorefileError("CoreDNS can only be raised")
        check_migration(current, desired)
    except ImageError:
        # a bad new tag is reported above, and a bad old one cannot be compared
        return
    except CorefileError as error:
        yield forbidden(".".join(path), f"cannot migrate CoreDNS up to '{new_tag}' from '{old_tag}': {error.message}")


ADMISSIONS: Final = (
    Admission(KUBEADM_CONTROL_PLANE, default, validate),
    Admission(KUBEADM_CONTROL_PLANE_TEMPLATE, unchanged, validate_template),
)
ADMISSION: Final = KindAdmission(ADMISSIONS)
