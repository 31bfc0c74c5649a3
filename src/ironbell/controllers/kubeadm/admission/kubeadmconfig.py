"""Admission of KubeadmConfigs and their templates.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/webhooks/admission/{kubeadmconfig,kubeadmconfigtemplate}.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.bootstrap.kubeadmconfigtemplate import KUBEADM_CONFIG_TEMPLATE
from ironbell.api.cluster.names import ANNOTATION_TOPOLOGY_DRY_RUN
from ironbell.contract.admission import Admission, FieldProblem, unchanged
from ironbell.contract.fields import at
from ironbell.contract.system import KindAdmission
from ironbell.controllers.kubeadm.admission.spec import metadata_problems, spec_problems, with_previous_defaults
from ironbell.kube.decision import Fields


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a KubeadmConfig."""
    return list(spec_problems(new.get("spec") or {}, "spec"))


def default_template(new: Fields, old: Fields | None) -> Fields:
    """Return the template; for the comparisons of a topology it gets the defaults of older versions."""
    if ANNOTATION_TOPOLOGY_DRY_RUN not in (at(new, "metadata", "annotations") or {}):
        return new
    template = at(new, "spec", "template") or {}
    template = {**template, "spec": with_previous_defaults(template.get("spec") or {})}
    return {**new, "spec": {**(new.get("spec") or {}), "template": template}}


def validate_template(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a KubeadmConfigTemplate."""
    path = "spec.template"
    problems = list(spec_problems(at(new, "spec", "template", "spec") or {}, f"{path}.spec"))
    return [*problems, *metadata_problems(at(new, "spec", "template", "metadata"), f"{path}.metadata")]


ADMISSIONS: Final = (
    Admission(KUBEADM_CONFIG, unchanged, validate),
    Admission(KUBEADM_CONFIG_TEMPLATE, default_template, validate_template),
)
ADMISSION: Final = KindAdmission(ADMISSIONS)
