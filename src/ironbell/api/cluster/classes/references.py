"""References of a ClusterClass to templates, and names of the objects created from them.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.common import TemplateReference
from ironbell.api.crd.markers import Schema, required
from ironbell.api.meta import Model


class ClassNamingSpec(Model, frozen=True):
    """Naming strategy of objects."""

    schema_ = Schema(min_properties=1)

    template: Annotated[str, Schema(min_length=1, max_length=1024)] = ""


class ClassTemplate(Model, frozen=True):
    """One template that objects are made from."""

    template_ref: TemplateReference = required(TemplateReference)
