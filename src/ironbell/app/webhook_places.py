"""Where the API server reads whom it may trust when it calls our webhooks, and where their certificates are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.conversion.names import CONVERTED
from ironbell.api.core import CUSTOM_RESOURCE_DEFINITION
from ironbell.api.kind import Collection
from ironbell.app.components import CLUSTER_API, TINK_CONTROLLER, Component

_ADMISSION: Final = "admissionregistration.k8s.io"
VALIDATING: Final = Collection(_ADMISSION, "v1", "validatingwebhookconfigurations", namespaced=False)
MUTATING: Final = Collection(_ADMISSION, "v1", "mutatingwebhookconfigurations", namespaced=False)
DEFINITIONS: Final = CUSTOM_RESOURCE_DEFINITION.collection

CONFIGURATION: Final = "ironbell-validate"
CLUSTER_CONFIGURATION: Final = "ironbell-cluster-api"
SECRET_NAME: Final = "ironbell-webhook-tls"  # noqa: S105 - an object's name
CLUSTER_SECRET_NAME: Final = "ironbell-cluster-api-webhook-tls"  # noqa: S105 - an object's name


@dataclass(frozen=True, slots=True)
class Place:
    """One object that names the certificate authority."""

    where: Collection
    name: str


TINK_PLACES: Final = (Place(VALIDATING, CONFIGURATION),)
CLUSTER_PLACES: Final = (
    Place(MUTATING, CLUSTER_CONFIGURATION),
    Place(VALIDATING, CLUSTER_CONFIGURATION),
    *(Place(DEFINITIONS, name) for name in sorted(CONVERTED)),
)


def places_of(components: Iterable[Component]) -> tuple[Place, ...]:
    """The objects about webhooks of these components."""
    names = {component.name for component in components}
    tink = TINK_PLACES if TINK_CONTROLLER.name in names else ()
    return (*tink, *(CLUSTER_PLACES if CLUSTER_API.name in names else ()))


def secret_of(components: Iterable[Component]) -> str:
    """The Secret with the certificates of a process that runs these components: one for each name that it serves by."""
    names = {component.name for component in components}
    return SECRET_NAME if TINK_CONTROLLER.name in names else CLUSTER_SECRET_NAME


def client_configs(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of such an object that name the authority."""
    conversion = ((found.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    every = [webhook.get("clientConfig") for webhook in (*(found.get("webhooks") or ()), conversion)]
    return [config for config in every if isinstance(config, dict)]
