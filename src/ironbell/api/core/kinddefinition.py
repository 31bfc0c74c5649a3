"""CustomResourceDefinitions without their schemas: what controllers keep in memory to find the kinds of others.

Source: kubernetes/apiextensions-apiserver: pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, Model, Resource


class DefinedNames(Model, frozen=True):
    """Names of the kind and its objects."""

    plural: str = ""
    kind: str = ""


class DefinedVersion(Model, frozen=True):
    """One version of the kind."""

    name: str = ""
    served: bool = False
    storage: bool = False


class KindDefinitionSpec(Model, frozen=True):
    """The kind."""

    group: str = ""
    names: DefinedNames = DefinedNames()
    scope: str = ""
    versions: list[DefinedVersion] = []


class KindDefinitionStatus(Model, frozen=True):
    """Observed state of the definition."""

    conditions: list[Condition] = []


class KindDefinition(Resource, frozen=True):
    """A CustomResourceDefinition, without its schemas."""

    spec: KindDefinitionSpec = KindDefinitionSpec()
    status: KindDefinitionStatus = KindDefinitionStatus()


KIND_DEFINITION: Kind[KindDefinition] = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    model=KindDefinition,
    namespaced=False,
    has_status=True,
    description="A kind added to the API at run time, read without its schemas.",
)
