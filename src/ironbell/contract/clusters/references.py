"""References to objects of kinds that are not ours, and in which version of the API they are read.

A reference names group, kind and name. The version follows from labels on the kind's CustomResourceDefinition:
`cluster.x-k8s.io/<contract>: <version>[_<version>...]` lists a contract's versions. Of the contracts that
we understand the newest is taken, and of its versions the newest.

Definitions are watched without their schemas, and found by group and kind.

Source: kubernetes-sigs/cluster-api: internal/contract/version.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ironbell.api.cluster.names import LABEL_CONTRACT_PREFIX
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.clusters.versions import api_version_key
from ironbell.contract.plurals import plural_of
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Index, Watch, read_by

V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"
CONTRACTS: Final = (V1BETA2, V1BETA1)
"""Supported contracts, the newest first."""

BY_GROUP_KIND: Final[Index[KindDefinition]] = Index(
    KIND_DEFINITION, "group-kind", lambda definition: [f"{definition.spec.group}/{definition.spec.names.kind}"]
)
"""To be among the indexes of a reconciler that looks up references."""


class NoSuchKindError(IronbellError):
    """The kind of a reference has no definition, or one that names no supported contract."""

    reason = "NoSuchKind"
    retry = Retry.NEVER


class Reference(Protocol):
    """Reference to an object in the same namespace (`ContractVersionedObjectReference`)."""

    @property
    def api_group(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference by itself."""

    api_group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Contracted:
    """Kind (and so version) and contract with which objects are read."""

    kind: Kind[Unstructured]
    contract: str


DEFINITIONS: Final[Watch[KindDefinition]] = read_by(
    KIND_DEFINITION,
    BY_GROUP_KIND,
    relevant=changed(lambda definition: (definition.metadata.labels, definition.spec)),
)
"""To be among the watches of a reconciler that looks up references."""


def resolve(cache: Cache, group: str, kind: str) -> Contracted:
    """Return the kind and contract with which objects of a kind are read.

    Raises:
        NoSuchKindError: it has no definition, or none of the contracts.
    """
    definition = _definition(cache, group, kind)
    contracted = contracted_version(definition.metadata.labels)
    if contracted is not None:
        contract, version = contracted
        return Contracted(_kind(definition, version), contract)
    raise NoSuchKindError(
        f"CustomResourceDefinition {definition.metadata.name} has no label"
        f" {' or '.join(LABEL_CONTRACT_PREFIX + contract for contract in CONTRACTS)} that names an API version"
    )


def contracted_version(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """The newest contract that a definition's labels name, and the newest API version that keeps it."""
    for contract in CONTRACTS:
        versions = [version for version in labels.get(LABEL_CONTRACT_PREFIX + contract, "").split("_") if version]
        if versions:
            return contract, max(versions, key=api_version_key)
    return None


def definition_name(group: str, kind: str) -> str:
    """Return the name of the definition of a kind, as upstream expects it."""
    return f"{plural_of(kind.lower())}.{group}"


def contract_api_version(labels: Mapping[str, str], group: str) -> str:
    """The apiVersion in which a reference to a kind of the group is written for clients of older versions, by its
    definition's labels. A kind without a definition, or whose definition names no contract, is taken to follow the
    older one: one missing provider must not make whole lists unreadable."""
    contracted = contracted_version(labels)
    return f"{group}/{contracted[1] if contracted is not None else V1BETA1}"


def resolve_version(cache: Cache, group: str, version: str, kind: str) -> Contracted:
    """Return the kind with which objects are read in the version of a reference, and the contract of that version.

    Raises:
        NoSuchKindError: it has no definition, or the version none of the contracts.
    """
    definition = _definition(cache, group, kind)
    for contract in CONTRACTS:
        if version in definition.metadata.labels.get(LABEL_CONTRACT_PREFIX + contract, "").split("_"):
            return Contracted(_kind(definition, version), contract)
    raise NoSuchKindError(
        f"CustomResourceDefinition {definition.metadata.name} has no label that names a contract for version {version}"
    )


def api_version(cache: Cache, group: str, kind: str) -> str:
    """Return the apiVersion in which objects of a kind are read; empty if it is unknown."""
    try:
        return resolve(cache, group, kind).kind.api_version
    except NoSuchKindError:
        return ""


def _definition(cache: Cache, group: str, kind: str) -> KindDefinition:
    definitions = cache.indexed(BY_GROUP_KIND, f"{group}/{kind}")
    if not definitions:
        raise NoSuchKindError(f"there is no CustomResourceDefinition for {kind} in group {group}")
    return definitions[0]


def _kind(definition: KindDefinition, version: str) -> Kind[Unstructured]:
    spec = definition.spec
    return dynamic_kind(
        spec.group, version, spec.names.kind, spec.names.plural, namespaced=spec.scope.lower() != "cluster"
    )
