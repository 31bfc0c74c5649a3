"""The webhook configuration; the component that serves it adds its certificate authority by itself."""

from __future__ import annotations

from collections.abc import Iterator

from ironbell.app.admission.places import secret_of
from ironbell.app.components import rules_of
from ironbell.app.install.options import InstallOptions, Object, Unit, new_object
from ironbell.app.install.reference_webhooks import access_review_rules, reference_entries
from ironbell.app.systems import answers_webhooks
from ironbell.base.ports import HTTPS_PORT, WEBHOOK_PORT
from ironbell.contract.crossing import USE
from ironbell.contract.system import System

PATHS = {
    "templates": "/validate/templates",
    "hardware": "/validate/hardware",
    "workflowrulesets": "/validate/workflowrulesets",
    "machines": "/validate/machines",
}
DELETION_PATH = "/validate/hardware-deletion"
_GROUPS = {"machines": "bmc.tinkerbell.org"}
_TIMEOUT_S = 2


def serves_webhooks(unit: Unit) -> bool:
    """Return whether a Deployment answers admission requests."""
    return any(map(answers_webhooks, unit.systems))


def _engine(unit: Unit) -> System | None:
    return next((system for system in unit.systems if system.answers_engine_webhooks), None)


def host_name(unit: Unit, options: InstallOptions) -> str:
    """The name by which the API server reaches the Deployment."""
    return f"{unit.name}.{options.namespace}.svc"


def webhook_arguments(unit: Unit, options: InstallOptions) -> list[str]:
    """Arguments of `ironbell run` for the webhooks of a Deployment."""
    if not serves_webhooks(unit):
        return []
    return [f"--webhook-address=0.0.0.0:{WEBHOOK_PORT}", f"--webhook-host={host_name(unit, options)}"]


def webhooks(options: InstallOptions) -> Iterator[Object]:
    """The configuration, if a Deployment serves it."""
    unit, system = next(((unit, system) for unit in options.units if (system := _engine(unit))), (None, None))
    if unit is None or system is None:
        return
    service = {"name": unit.name, "namespace": options.namespace, "port": HTTPS_PORT}
    account_prefix = f"system:serviceaccount:{options.namespace}:ironbell-"
    entries: list[Object] = [
        {
            "name": f"{plural}.validate.ironbell.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {**service, "path": path}},
            "rules": [
                {
                    "apiGroups": [_GROUPS.get(plural, "tinkerbell.org")],
                    "apiVersions": ["v1alpha1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [plural],
                    "scope": "Namespaced",
                }
            ],
            # writes of users, not those of controllers and servers
            "matchConditions": [
                {"name": "by-others", "expression": f"!request.userInfo.username.startsWith('{account_prefix}')"},
                {
                    "name": "spec-changes",
                    "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
                },
            ],
            # it only warns: nothing is rejected while it is unavailable
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": _TIMEOUT_S,
        }
        for plural, path in PATHS.items()
    ]
    hardware = next(entry for entry in entries if entry["name"].startswith("hardware."))
    entries.append(_of_deletion(hardware))
    recorders = [options.user_of(unit) for unit in options.units if _uses_secrets(unit)]
    entries += reference_entries(service, recorders)
    api = "admissionregistration.k8s.io/v1"
    yield new_object(
        api, "ValidatingWebhookConfiguration", system.webhook_names.configuration, component=unit.word, webhooks=entries
    )


def _of_deletion(hardware: Object) -> Object:
    """The entry for deletions of Hardware, derived from the one for writes."""
    rules = [{**rule, "operations": ["DELETE"]} for rule in hardware["rules"]]
    service = {**hardware["clientConfig"]["service"], "path": DELETION_PATH}
    by_others = [match for match in hardware["matchConditions"] if match["name"] == "by-others"]
    return {
        **hardware,
        "name": "hardware-deletion.validate.ironbell.dev",
        "clientConfig": {"service": service},
        "rules": rules,
        "matchConditions": by_others,
    }


def _uses_secrets(unit: Unit) -> bool:
    """Return whether its controllers follow references to Secrets: they record the BMC's address that they used."""
    return any("secrets" in rule["resources"] and USE in rule["verbs"] for rule in rules_of(unit.components))


def secret_rules(unit: Unit) -> list[Object]:
    """Rules for the certificates' Secret in the own namespace."""
    if not serves_webhooks(unit):
        return []
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    return [
        {**secrets, "verbs": ["create"]},
        {**secrets, "resourceNames": [secret_of(unit.systems)], "verbs": ["get", "update"]},
    ]


def configuration_rules(unit: Unit) -> list[Object]:
    """Rules for adding the certificate authority to the configuration."""
    system = _engine(unit)
    if system is None:
        return []
    return [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": [system.webhook_names.configuration],
            "verbs": ["get", "update"],
        },
        *access_review_rules(),
    ]
