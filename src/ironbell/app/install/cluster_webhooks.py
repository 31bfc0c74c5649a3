"""Definitions and webhook configurations of Cluster API's kinds; the process that serves them adds its authority.

Unlike the warnings about Tinkerbell's kinds they are required: objects must not be stored without being completed and
checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbell.api.crd.document import crd_document
from ironbell.app.admission.handlers import CONVERT_PATH, mutate_path, scale_path, validate_path
from ironbell.app.admission.inventory import inventory
from ironbell.app.admission.kinds import rules_of
from ironbell.app.admission.places import DEFINITIONS, MUTATING, VALIDATING
from ironbell.app.install.options import InstallOptions, Object, Unit, labels, new_object
from ironbell.app.systems import SYSTEMS, answered_by, converted_in, kinds_of
from ironbell.base.ports import HTTPS_PORT
from ironbell.contract.system import Definitions, System

_TIMEOUT_S = 10


def cluster_definitions(options: InstallOptions) -> Iterator[Object]:
    """Definitions of kinds whose systems run, or whose webhooks a process answers, as each system requires."""
    own = [system for system in SYSTEMS if system.definitions is Definitions.WITH_SYSTEM and _unit(system, options)]
    answered = [
        system
        for system in SYSTEMS
        if system.definitions is Definitions.WITH_WEBHOOKS and _answering_unit(system, options) is not None
    ]
    kinds = [*kinds_of(own), *kinds_of(answered, inventory=_has_core_provider(options))]
    for kind in kinds:
        document = crd_document(kind)
        name = document["metadata"]["name"]
        owner = next((system for system in SYSTEMS if name in system.converted), None)
        unit = _answering_unit(owner, options) if owner is not None else None
        if unit is not None:
            client = _client(unit, options, CONVERT_PATH)
            webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
            document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield document


def cluster_providers(options: InstallOptions) -> Iterator[Object]:
    """Entries of the inventory of providers, if its definition is installed."""
    if not _has_core_provider(options):
        return
    components = {component.name for unit in options.units for component in unit.components}
    for document in inventory(options.namespace, components):
        metadata = document["metadata"]
        yield {**document, "metadata": {**metadata, "labels": {**metadata["labels"], **labels()}}}


def cluster_webhooks(options: InstallOptions) -> Iterator[Object]:
    """The webhook configurations of each process that answers webhooks of kinds."""
    for system in SYSTEMS:
        unit = _unit(system, options)
        answered = [
            other
            for other in answered_by(system)
            if other.definitions is Definitions.WITH_WEBHOOKS or _unit(other, options) is not None
        ]
        if unit is not None and answered:
            yield from _configurations(system, answered, unit, options)


def _configurations(
    system: System, answered: Sequence[System], unit: Unit, options: InstallOptions
) -> Iterator[Object]:
    every = {name: rules for other in answered for name, rules in rules_of(other).items()}
    scale_checked = frozenset[str]().union(*(other.scale_checked for other in answered))
    for configuration, prefix, path_of in (
        ("MutatingWebhookConfiguration", "default", mutate_path),
        ("ValidatingWebhookConfiguration", "validate", validate_path),
    ):
        entries = [
            {
                "name": f"{prefix}.{definition}",
                "admissionReviewVersions": ["v1"],
                "clientConfig": _client(unit, options, path_of(definition)),
                "rules": [
                    {
                        "apiGroups": [rules.alone.kind.group],
                        "apiVersions": [rules.alone.kind.version],
                        "operations": _operations(prefix, deletions=rules.deletions),
                        "resources": [rules.alone.kind.plural],
                        "scope": "*",
                    }
                ],
                # writes in the older version are reviewed too, converted to the stored one
                "matchPolicy": "Equivalent",
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": _TIMEOUT_S,
            }
            for definition, rules in every.items()
        ]
        if prefix == "validate":
            entries += [_scale_entry(entry) for entry in entries if _definition_of(entry) in scale_checked]
        name = system.webhook_names.configuration
        yield new_object(MUTATING.api_version, configuration, name, component=unit.word, webhooks=entries)


def configuration_rules(unit: Unit) -> list[Object]:
    """Rules for adding the certificate authority to definitions and configurations."""
    rules: list[Object] = []
    for system in unit.systems:
        answered = answered_by(system)
        if not answered:
            continue
        configurations = {
            "apiGroups": [MUTATING.group],
            "resources": [MUTATING.plural, VALIDATING.plural],
            "resourceNames": [system.webhook_names.configuration],
        }
        rules.append({**configurations, "verbs": ["get", "update"]})
        if converted := sorted(converted_in(answered)):
            definitions = {"apiGroups": [DEFINITIONS.group], "resources": [DEFINITIONS.plural]}
            rules.append({**definitions, "resourceNames": converted, "verbs": ["get", "update"]})
    return rules


def _definition_of(entry: Object) -> str:
    rule = entry["rules"][0]
    return f"{rule['resources'][0]}.{rule['apiGroups'][0]}"


def _scale_entry(entry: Object) -> Object:
    """The entry for the scale subresource."""
    rule, client, definition = entry["rules"][0], entry["clientConfig"], _definition_of(entry)
    return {
        **entry,
        "name": f"validate-scale.{definition}",
        "clientConfig": {"service": {**client["service"], "path": scale_path(definition)}},
        "rules": [{**rule, "resources": [f"{rule['resources'][0]}/scale"], "operations": ["UPDATE"]}],
    }


def _operations(prefix: str, *, deletions: bool) -> list[str]:
    return ["CREATE", "UPDATE", "DELETE"] if deletions and prefix == "validate" else ["CREATE", "UPDATE"]


def _has_core_provider(options: InstallOptions) -> bool:
    """Return whether clusterctl finds Cluster API here."""
    providers = [system.provider for unit in options.units for system in unit.systems if system.provider is not None]
    return any(provider.type == "CoreProvider" for provider in providers)


def _unit(system: System, options: InstallOptions) -> Unit | None:
    """The first Deployment in which a system runs."""
    return next((unit for unit in options.units if system in unit.systems), None)


def _answering_unit(system: System, options: InstallOptions) -> Unit | None:
    """The Deployment that answers the webhooks of a system's kinds."""
    return next((unit for other in SYSTEMS if other.name == system.answering and (unit := _unit(other, options))), None)


def _client(unit: Unit, options: InstallOptions, path: str) -> Object:
    return {"service": {"name": unit.name, "namespace": options.namespace, "port": HTTPS_PORT, "path": path}}
