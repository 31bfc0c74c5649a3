"""The webhooks of the components that run in this process; they read the caches of the controllers beside them."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.conversion.rules import ApiVersionOf
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW_RULE_SET
from ironbell.app.admission.handlers import Handler, cluster_handlers
from ironbell.app.admission.places import places_of, secret_of
from ironbell.app.admission.reference_webhook import REFERENCES_PATH, reference_handler
from ironbell.app.admission.reviews import (
    Review,
    both,
    hardware_deletion_review,
    hardware_review,
    ineffective_review,
    template_review,
)
from ironbell.app.admission.server import Webhooks
from ironbell.app.admission.tls import WebhookTls
from ironbell.app.install.webhooks import DELETION_PATH, PATHS
from ironbell.app.run.controllers import Controllers, own_namespace
from ironbell.app.run.options import RunOptions
from ironbell.app.systems import SYSTEMS, answered_by, answers_webhooks
from ironbell.base.clock import SystemClock
from ironbell.contract.clusters.references import contract_api_version, definition_name
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.controllers.tink.rendering.pool import rendering_pool
from ironbell.kube.cache.informer import Informer
from ironbell.kube.transport.http import HttpApi


def webhooks_beside(running: Mapping[str, Controllers], options: RunOptions, api: HttpApi) -> list[Webhooks]:
    """One server for the webhooks of all systems that answer any; none if there are no such systems."""
    systems = [system for system in SYSTEMS if system.name in running and answers_webhooks(system)]
    if not systems:
        return []
    reviews: dict[str, Review] = {}
    handlers: dict[str, Handler] = {}
    for system in systems:
        if system.answers_engine_webhooks:
            reviews |= _reviews(running[system.name])
            handlers[REFERENCES_PATH] = reference_handler(api)
        if answered := answered_by(system):
            handlers |= cluster_handlers(_api_versions(running[system.name]), api, answered)
    tls = WebhookTls(
        api,
        own_namespace(),
        options.webhook_hosts or (socket.gethostname(),),
        SystemClock(),
        secret=secret_of(systems),
        places=places_of(systems),
    )
    return [Webhooks(options.webhook_address, tls, reviews, handlers)]


def _reviews(controllers: Controllers) -> Mapping[str, Review]:
    directory = HardwareDirectory()
    controllers.manager.informers.of(HARDWARE).add_handler(directory.follow)
    return {
        PATHS["templates"]: both(
            template_review(controllers.runtime.shared(rendering_pool).parse), ineffective_review(TEMPLATE)
        ),
        PATHS["hardware"]: both(hardware_review(directory), ineffective_review(HARDWARE)),
        PATHS["workflowrulesets"]: ineffective_review(WORKFLOW_RULE_SET),
        DELETION_PATH: hardware_deletion_review,
        PATHS["machines"]: ineffective_review(BMC_MACHINE),
    }


def _api_versions(controllers: Controllers) -> ApiVersionOf:
    definitions: Informer[KindDefinition] = controllers.manager.informers.of(KIND_DEFINITION)

    def api_version_of(group: str, kind: str) -> str:
        definition = definitions.store.get(("", definition_name(group, kind)))
        return contract_api_version(definition.metadata.labels if definition is not None else {}, group)

    return api_version_of
