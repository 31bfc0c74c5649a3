"""Identities of our own processes at the API, and the permissions of each: the least that its work needs.

The embedded API enforces these rules on every call; the same rules make the ClusterRoles of a cluster install.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.contract.access import PolicyRule

NAMESPACE = "ironbell-system"
READ = ("get", "list", "watch")
TINKERBELL = ("tinkerbell.org",)


def service_account_user(name: str) -> str:
    """The user name of a ServiceAccount in our namespace, as Kubernetes forms it."""
    return f"system:serviceaccount:{NAMESPACE}:{name}"


BOOT = service_account_user("ironbell-boot")
WORKFLOW = service_account_user("ironbell-workflow")
FORMER = service_account_user("ironbell-wire")
"""Account to which earlier releases gave a token for all servers for machines."""
SERVICE_GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")

_READS = Rule(READ, ("hardware", "workflows"), TINKERBELL)
# A colon, as in Kubernetes' own names: an installation on this API may have roles of the names without.
BOOT_ROLE = Role(
    "ironbell:boot",
    (
        _READS,
        # reports of installed systems, and the tokens of boots
        Rule(("patch",), ("hardware",), TINKERBELL),
        Rule(("create", "patch"), ("events",), ("",)),
    ),
)
WORKFLOW_ROLE = Role(
    "ironbell:workflow",
    # reports of agents
    (_READS, Rule(("patch",), ("hardware", "workflows", "workflows/status"), TINKERBELL)),
)

BMC = ("bmc.tinkerbell.org",)
CLUSTER_API = (
    "cluster.x-k8s.io",
    "addons.cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
    "ipam.cluster.x-k8s.io",
)
"""Groups of Cluster API: its own, and those in which providers have their kinds."""

READER = Identity(service_account_user("ironbell-controllers"), SERVICE_GROUPS)
"""Reads for all controllers; each writes under its own name."""
READER_ROLE = Role(
    "ironbell:controllers",
    (
        Rule(READ, ("*",), (*TINKERBELL, *BMC, *CLUSTER_API)),
        # the contract that each version of a provider's kinds has
        Rule(READ, ("customresourcedefinitions",), ("apiextensions.k8s.io",)),
        # changes only; contents of Secrets are read when they are used, under the name of the controller that uses them
        Rule(READ, ("secrets", "configmaps"), ("",)),
        # the rules for claims of the servers in them
        Rule(READ, ("namespaces",), ("",)),
        Rule(("create", "patch"), ("events",), ("",)),
    ),
)


def grant_further_reads(authorizer: RoleAuthorizer, reads: Iterable[PolicyRule]) -> None:
    """Let the identity that reads for all controllers also read the API groups that only their systems know."""
    known = {group for rule in READER_ROLE.rules for group in rule.api_groups}
    further = tuple(dict.fromkeys(group for rule in reads for group in rule["apiGroups"] if group not in known))
    if further:
        role = Role(f"{READER_ROLE.name}:further", (Rule(READ, ("*",), further),))
        authorizer.grant(role, [Binding(role.name, users=(READER.user,))])


def grant_processes(authorizer: RoleAuthorizer) -> None:
    """Grant the processes for machines, and the reader for the controllers, their roles."""
    authorizer.grant(BOOT_ROLE, [Binding(BOOT_ROLE.name, users=(BOOT,))])
    authorizer.grant(WORKFLOW_ROLE, [Binding(WORKFLOW_ROLE.name, users=(WORKFLOW,))])
    authorizer.grant(READER_ROLE, [Binding(READER_ROLE.name, users=(READER.user,))])
