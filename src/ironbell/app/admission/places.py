"""The objects in which the API server reads the certificate authority of our webhooks, and the certificates' Secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.kind import Collection
from ironbell.app.systems import answered_by, answers_webhooks, converted_in
from ironbell.contract.system import System

_ADMISSION: Final = "admissionregistration.k8s.io"
VALIDATING: Final = Collection(_ADMISSION, "v1", "validatingwebhookconfigurations", namespaced=False)
MUTATING: Final = Collection(_ADMISSION, "v1", "mutatingwebhookconfigurations", namespaced=False)
DEFINITIONS: Final = CUSTOM_RESOURCE_DEFINITION.collection


@dataclass(frozen=True, slots=True)
class Place:
    """One object that names the certificate authority."""

    where: Collection
    name: str


def places_of(systems: Iterable[System]) -> tuple[Place, ...]:
    """The objects about the webhooks that the processes of these systems answer."""
    return tuple(place for system in systems for place in _places(system))


def _places(system: System) -> Iterator[Place]:
    configuration = system.webhook_names.configuration
    if system.answers_engine_webhooks:
        yield Place(VALIDATING, configuration)
    if answered := answered_by(system):
        yield from (Place(MUTATING, configuration), Place(VALIDATING, configuration))
        yield from (Place(DEFINITIONS, name) for name in sorted(converted_in(answered)))


def secret_of(systems: Iterable[System]) -> str:
    """The Secret with the certificates of a process that runs these systems: one for each name of the process."""
    return next(system.webhook_names.secret for system in systems if answers_webhooks(system))


def client_configs(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of such an object that contain the authority."""
    conversion = ((config.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    every = [webhook.get("clientConfig") for webhook in (*(config.get("webhooks") or ()), conversion)]
    return [config for config in every if isinstance(config, dict)]
