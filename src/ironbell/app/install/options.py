"""Options of an installation on a cluster, and the names that all its objects share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ironbell.app import roles
from ironbell.app.components import Component, members
from ironbell.app.systems import SYSTEMS
from ironbell.contract.system import System

Object: TypeAlias = dict[str, Any]

PART_OF = "app.kubernetes.io/part-of"
COMPONENT = "app.kubernetes.io/component"
DEFAULT_COMPONENTS = (*(system.name for system in SYSTEMS if system.is_installed_by_default), "wire")
DEFAULT_IMAGE = "ironbell"
DEFAULT_REPLICAS = 2


@dataclass(frozen=True)
class Unit:
    """The content of one Deployment: a component, or a group of them in one process."""

    word: str
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of its Deployment, ServiceAccount and roles."""
        return f"ironbell-{self.word}"

    @property
    def components(self) -> tuple[Component, ...]:
        """The components that run in it.

        Raises:
            UnknownComponentError: the word names no component.
        """
        return members(self.word)

    @property
    def systems(self) -> list[System]:
        """The controller systems that run in it.

        Raises:
            UnknownComponentError: the word names no component.
        """
        return [component.system for component in self.components if component.system is not None]


@dataclass(frozen=True)
class InstallOptions:
    """All options of the manifests."""

    namespace: str = roles.NAMESPACE
    image: str = DEFAULT_IMAGE
    words: tuple[str, ...] = DEFAULT_COMPONENTS
    replicas: int = DEFAULT_REPLICAS
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Additional arguments of `ironbell run`, by the word of the Deployment."""

    @property
    def units(self) -> tuple[Unit, ...]:
        return tuple(Unit(word, self.arguments.get(word, ())) for word in dict.fromkeys(self.words))

    def user_of(self, unit: Unit) -> str:
        """The user name of a Deployment at the API."""
        return f"system:serviceaccount:{self.namespace}:{unit.name}"


def labels(component: str = "") -> dict[str, str]:
    """Labels of an object of Ironbell."""
    result = {"app.kubernetes.io/name": "ironbell", PART_OF: "ironbell", "app.kubernetes.io/managed-by": "ironbell"}
    return result | ({COMPONENT: component} if component else {})


def new_object(
    api_version: str, kind: str, name: str, *, namespace: str = "", component: str = "", **fields: Any
) -> Object:
    """Return an object with our labels."""
    metadata: Object = {"name": name, "labels": labels(component)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
