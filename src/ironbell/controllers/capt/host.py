"""Translates a TinkerbellMachine, with its Machine and Cluster, into what the server lifecycle is asked for. Pure."""

from __future__ import annotations

from ironbell.api.capt.tinkerbellmachine import HardwareAffinity, TinkerbellMachineSpec
from ironbell.contract.selectors import compiled
from ironbell.provisioner.claims_from import UNSET, ClaimRules
from ironbell.provisioner.lifecycle.selection import Wish


def wish(
    spec: TinkerbellMachineSpec,
    *,
    failure_domain_label: str = "",
    failure_domain: str = "",
    cluster: str = "",
    namespace: str = "",
    claims: ClaimRules = UNSET,
) -> Wish:
    """Return which servers a TinkerbellMachine with this spec may claim.

    Raises:
        SelectorError: a label selector of spec.hardwareAffinity is not valid.
    """
    affinity = spec.hardware_affinity or HardwareAffinity()
    return Wish(
        tuple(compiled(term.label_selector) for term in affinity.required),
        tuple((term.weight, compiled(term.hardware_affinity_term.label_selector)) for term in affinity.preferred),
        spec.hardware_requirements,
        failure_domain_label,
        failure_domain if failure_domain_label else "",
        cluster,
        namespace,
        claims,
    )
