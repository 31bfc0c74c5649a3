"""References of a ClusterClass to templates, and names of the objects created from them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from ironbell.api.cluster.common import TemplateReference
from ironbell.api.crd.markers import Schema, Text1024, required
from ironbell.api.meta import Model


class ClassNamingSpec(Model, frozen=True):
    """Naming strategy of objects."""

    schema_ = Schema(min_properties=1)

    template: Text1024 = ""


class ClassTemplate(Model, frozen=True):
    """One template that objects are made from."""

    template_ref: TemplateReference = required(TemplateReference)
