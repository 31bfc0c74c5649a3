"""Definitions and webhook configurations of Cluster API's kinds; who serves them puts its certificate authority in.

Unlike the warnings about Tinkerbell's kinds these are needed: what they would complete or refuse must not be stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.api import (
    addons,
    bootstrap,
    capt,
    cluster,
    clusterctl,
    clusteripam,
    clusterruntime,
    controlplane,
    inclusteripam,
)
from ironbell.api.conversion.names import CONVERTED
from ironbell.api.crd.document import crd_document
from ironbell.app.cluster_admission import admissions
from ironbell.app.cluster_inventory import inventory
from ironbell.app.cluster_webhooks import CONVERT_PATH, SCALES_CHECKED, mutate_path, scale_path, validate_path
from ironbell.app.components import CLUSTER_API, IPAM
from ironbell.app.install.options import InstallOptions, Object, Unit, labels, made
from ironbell.app.webhook_places import CLUSTER_CONFIGURATION, DEFINITIONS, MUTATING, VALIDATING

_TIMEOUT_S = 10
_PACKAGES = (cluster, bootstrap, controlplane, addons, clusteripam, clusterruntime, clusterctl, capt)
_POOLS = frozenset(f"{kind.plural}.{kind.group}" for kind in inclusteripam.KINDS)


def serves_cluster_webhooks(unit: Unit) -> bool:
    """Whether a Deployment answers for Cluster API's kinds."""
    return CLUSTER_API in unit.components


def cluster_definitions(options: InstallOptions) -> Iterator[Object]:
    """The definitions of Cluster API's kinds, where something serves their webhooks; of address pools, where ours looks
    after them: upstream's provider may be there in its place, with versions and webhooks of its own."""
    if _has_pools(options):
        yield from map(crd_document, inclusteripam.KINDS)
    unit = _unit(options)
    if unit is None:
        return
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": _client(unit, options, CONVERT_PATH)}
    for kind in (kind for package in _PACKAGES for kind in package.KINDS):
        document = crd_document(kind)
        if document["metadata"]["name"] in CONVERTED:
            document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield document


def cluster_providers(options: InstallOptions) -> Iterator[Object]:
    """Entries of the inventory of providers, where the definitions are installed."""
    if _unit(options) is None:
        return
    components = {component.name for unit in options.units for component in unit.components}
    for document in inventory(options.namespace, components):
        metadata = document["metadata"]
        yield {**document, "metadata": {**metadata, "labels": {**metadata["labels"], **labels()}}}


def cluster_webhooks(options: InstallOptions) -> Iterator[Object]:
    """The webhook configurations, where something serves them."""
    unit = _unit(options)
    if unit is None:
        return
    api = MUTATING.api_version
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
                # a write in the older version is asked about as well, brought to the stored one
                "matchPolicy": "Equivalent",
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": _TIMEOUT_S,
            }
            for definition, rules in admissions().items()
            if definition not in _POOLS or _has_pools(options)
        ]
        if prefix == "validate":
            entries += [_scale_entry(entry) for entry in entries if _definition_of(entry) in SCALES_CHECKED]
        yield made(api, configuration, CLUSTER_CONFIGURATION, component=unit.word, webhooks=entries)


def configuration_rules(unit: Unit) -> list[Object]:
    """What it takes to put the certificate authority into definitions and configurations."""
    if not serves_cluster_webhooks(unit):
        return []
    configurations = {
        "apiGroups": [MUTATING.group],
        "resources": [MUTATING.plural, VALIDATING.plural],
        "resourceNames": [CLUSTER_CONFIGURATION],
    }
    definitions = {
        "apiGroups": [DEFINITIONS.group],
        "resources": [DEFINITIONS.plural],
        "resourceNames": sorted(CONVERTED),
    }
    return [{**configurations, "verbs": ["get", "update"]}, {**definitions, "verbs": ["get", "update"]}]


def _definition_of(entry: Object) -> str:
    rule = entry["rules"][0]
    return f"{rule['resources'][0]}.{rule['apiGroups'][0]}"


def _scale_entry(entry: Object) -> Object:
    """The same for the scale subresource."""
    rule, client, definition = entry["rules"][0], entry["clientConfig"], _definition_of(entry)
    return {
        **entry,
        "name": f"validate-scale.{definition}",
        "clientConfig": {"service": {**client["service"], "path": scale_path(definition)}},
        "rules": [{**rule, "resources": [f"{rule['resources'][0]}/scale"], "operations": ["UPDATE"]}],
    }


def _operations(prefix: str, *, deletions: bool) -> list[str]:
    return ["CREATE", "UPDATE", "DELETE"] if deletions and prefix == "validate" else ["CREATE", "UPDATE"]


def _has_pools(options: InstallOptions) -> bool:
    return any(IPAM in unit.components for unit in options.units)


def _unit(options: InstallOptions) -> Unit | None:
    return next((unit for unit in options.units if serves_cluster_webhooks(unit)), None)


def _client(unit: Unit, options: InstallOptions, path: str) -> Object:
    return {"service": {"name": unit.name, "namespace": options.namespace, "port": 443, "path": path}}
