"""Entries of the webhook configuration which check references into other namespaces.

Unlike the warnings beside them they must not be skipped: while no process answers, the API server rejects the writes.
So it calls the webhook only for writes that set such a reference, and for those of a BMC's address; all others are
accepted. Writes by the accounts that record the addresses of BMCs are not checked: they read every BMC's Secret anyway,
and servers must be powered on also while the component that answers is unavailable.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.app.admission.reference_webhook import REFERENCES_PATH, REVIEWS
from ironbell.app.install.options import Object
from ironbell.provisioner.bmc_address import ADDRESS, CONFIRMED

_TIMEOUT_S: Final = 5
_SPEC: Final = (
    "has(object.spec) && (request.operation == 'CREATE' || !has(oldObject.spec) || object.spec != oldObject.spec)"
)
_CONNECTION: Final = "object.spec.connection"
_OPTIONS: Final = f"{_CONNECTION}.providerOptions"
_OF_CONNECTION: Final = (
    f"has(object.spec) && has({_CONNECTION}) && ((has({_CONNECTION}.authSecretRef) && {{reference}}) || "
    f"(has({_OPTIONS}) && has({_OPTIONS}.rpc) && has({_OPTIONS}.rpc.hmac)))"
)


def _elsewhere(reference: str) -> str:
    return f"has({reference}.namespace) && !({reference}.namespace in ['', request.namespace])"


def _reference(*path: str) -> str:
    """An expression that is true if the reference at a path below the spec names another namespace."""
    fields = ["object.spec", *path]
    given = [f"has({'.'.join(fields[:count])})" for count in range(1, len(fields) + 1)]
    return " && ".join([*given, _elsewhere(".".join(fields))])


def _annotation(obj: str, name: str) -> str:
    annotations = f"{obj}.metadata.annotations"
    return f"(has({annotations}) && '{name}' in {annotations} ? {annotations}['{name}'] : '')"


def _annotated() -> str:
    created = " || ".join(f"{_annotation('object', name)} != ''" for name in (ADDRESS, CONFIRMED))
    changed = " || ".join(
        f"{_annotation('object', name)} != {_annotation('oldObject', name)}" for name in (ADDRESS, CONFIRMED)
    )
    return f"request.operation == 'CREATE' ? ({created}) : ({changed})"


_CONNECTS: Final = _OF_CONNECTION.format(reference=f"({_elsewhere(f'{_CONNECTION}.authSecretRef')})")
_ADDRESSES: Final = "machine-addresses"
_CONDITIONS: Final = (
    ("machine-secrets", MACHINE.group, MACHINE.version, MACHINE.plural, (_SPEC, _CONNECTS)),
    (_ADDRESSES, MACHINE.group, MACHINE.version, MACHINE.plural, (_annotated(),)),
    ("task-secrets", TASK.group, TASK.version, TASK.plural, (_SPEC, _CONNECTS)),
    ("job-machines", JOB.group, JOB.version, JOB.plural, (_SPEC, _reference("machineRef"))),
    (
        "cluster-templates",
        "infrastructure.cluster.x-k8s.io",
        "v1beta1",
        "tinkerbellclusters",
        (_SPEC, _reference("templateOverrideRef")),
    ),
    (
        "cluster-template-templates",
        "infrastructure.cluster.x-k8s.io",
        "v1beta1",
        "tinkerbellclustertemplates",
        (_SPEC, _reference("template", "spec", "templateOverrideRef")),
    ),
    (
        "cluster-classes",
        "cluster.x-k8s.io",
        "v1beta2",
        "clusters",
        (_SPEC, _reference("topology", "classRef")),
    ),
)


def reference_entries(service: Object, recorders: Collection[str]) -> list[Object]:
    """The entries; `service` belongs to the Deployment that answers, `recorders` record addresses of BMCs."""
    by_others = f"!(request.userInfo.username in [{', '.join(repr(user) for user in sorted(recorders))}])"
    return [
        {
            "name": f"{name}.references.ironbell.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {**service, "path": REFERENCES_PATH}},
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [plural],
                    "scope": "Namespaced",
                }
            ],
            "matchPolicy": "Equivalent",
            "matchConditions": [
                {"name": f"condition-{number}", "expression": expression}
                for number, expression in enumerate((*conditions, by_others) if name == _ADDRESSES else conditions, 1)
            ],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": _TIMEOUT_S,
        }
        for name, group, version, plural, conditions in _CONDITIONS
    ]


def access_review_rules() -> list[Object]:
    """Rules for querying the rights of writers of references."""
    return [{"apiGroups": [REVIEWS.group], "resources": [REVIEWS.plural], "verbs": ["create"]}]
