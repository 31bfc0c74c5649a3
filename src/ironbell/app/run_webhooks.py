"""The webhooks of the components that run in this process; they look at the caches of the controllers beside them."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW_RULE_SET
from ironbell.app.cluster_webhooks import Handler, cluster_handlers
from ironbell.app.components import CLUSTER_API, TINK_CONTROLLER
from ironbell.app.install.webhooks import DELETION_PATH, PATHS
from ironbell.app.reference_webhook import REFERENCES_PATH, reference_handler
from ironbell.app.run_controllers import Controllers, own_namespace
from ironbell.app.run_options import RunOptions
from ironbell.app.webhook_places import places_of, secret_of
from ironbell.app.webhook_reviews import (
    Review,
    both,
    hardware_deletion_review,
    hardware_review,
    ineffective_review,
    template_review,
)
from ironbell.app.webhook_tls import WebhookTls
from ironbell.app.webhooks import Webhooks
from ironbell.base.clock import SystemClock
from ironbell.contract.directory import HardwareDirectory
from ironbell.contract.references import contract_api_version, definition_name
from ironbell.kube.http import HttpApi
from ironbell.kube.informer import Informer


def webhooks_beside(running: Mapping[str, Controllers], options: RunOptions, api: HttpApi) -> list[Webhooks]:
    """One server for the webhooks of all components that have any; none if no component has."""
    components = [component for component in options.components if component in (TINK_CONTROLLER, CLUSTER_API)]
    if not components:
        return []
    reviews: Mapping[str, Review] = {}
    handlers: Mapping[str, Handler] = {}
    if TINK_CONTROLLER in components:
        reviews = _reviews(running[TINK_CONTROLLER.name])
        handlers = {REFERENCES_PATH: reference_handler(api)}
    if CLUSTER_API in components:
        handlers = {**handlers, **_handlers(running[CLUSTER_API.name], api)}
    tls = WebhookTls(
        api,
        own_namespace(),
        options.webhook_hosts or (socket.gethostname(),),
        SystemClock(),
        secret=secret_of(components),
        places=places_of(components),
    )
    return [Webhooks(options.webhook_address, tls, reviews, handlers)]


def _reviews(controllers: Controllers) -> Mapping[str, Review]:
    directory = HardwareDirectory()
    controllers.manager.informers.of(HARDWARE).add_handler(directory.follow)
    return {
        PATHS["templates"]: both(template_review(controllers.rendering.parse), ineffective_review(TEMPLATE)),
        PATHS["hardware"]: both(hardware_review(directory), ineffective_review(HARDWARE)),
        PATHS["workflowrulesets"]: ineffective_review(WORKFLOW_RULE_SET),
        DELETION_PATH: hardware_deletion_review,
        PATHS["machines"]: ineffective_review(BMC_MACHINE),
    }


def _handlers(controllers: Controllers, api: HttpApi) -> Mapping[str, Handler]:
    definitions: Informer[KindDefinition] = controllers.manager.informers.of(KIND_DEFINITION)

    def api_version_of(group: str, kind: str) -> str:
        found = definitions.store.get(("", definition_name(group, kind)))
        return contract_api_version(found.metadata.labels if found is not None else {}, group)

    return cluster_handlers(api_version_of, api)
