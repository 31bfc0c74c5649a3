"""What each controller may write of each kind that the API serves: what its role names, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, RoleAuthorizer
from ironbell.app import roles
from ironbell.app.components import COMPONENTS, Role
from ironbell.app.registry import KINDS
from ironbell.app.site.controllers import grant_controllers, identity, rules_by_controller

VERBS = ("create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind", "approve")
SUBRESOURCES = ("", "status", "scale", "finalizers", "token", "log", "exec")
BUILT_IN = (
    ("", "secrets"), ("", "configmaps"), ("", "events"), ("", "namespaces"), ("", "nodes"), ("", "pods"),
    ("", "serviceaccounts"), ("", "services"), ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"), ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"), ("coordination.k8s.io", "leases"),
    ("apiextensions.k8s.io", "customresourcedefinitions"), ("apps", "deployments"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("certificates.k8s.io", "certificatesigningrequests"),
)  # fmt: skip
RESOURCES = (*((kind.group, kind.plural) for kind in KINDS), *BUILT_IN)


def written(user: Identity) -> set[tuple[str, str, str]]:
    """Everything that the API lets somebody write."""
    authorizer = RoleAuthorizer()
    roles.grant_processes(authorizer)
    grant_controllers(authorizer)
    found = set()
    for (group, plural), subresource, verb in product(RESOURCES, SUBRESOURCES, VERBS):
        if authorizer.decide(user, Attributes(verb, group, plural, "default", "x", subresource)):
            found.add((group, f"{plural}/{subresource}".rstrip("/"), verb))
    return found


@pytest.mark.parametrize("controller", rules_by_controller())
def test_a_controller_writes_what_its_role_names(controller: str) -> None:
    named = {
        (group, resource, verb)
        for rule in rules_by_controller()[controller]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in {"get", "list", "watch"}
    }
    found = written(identity(controller))
    everything = {group for group, resource, _verb in named if resource == "*"}
    assert {each for each in found if each not in named and each[0] not in everything} == set()
    assert not {each for each in found if each[0] == "rbac.authorization.k8s.io"}
    assert not {each for each in found if each[2] in {"impersonate", "escalate", "bind", "approve", "deletecollection"}}


def test_what_reads_for_all_controllers_writes_events_alone() -> None:
    assert written(roles.READER) == {("", "events", "create"), ("", "events", "patch")}


def test_every_controller_is_part_of_a_component_that_is_listed() -> None:
    """So that docs/reference/writes.md, which lists components, has all of it."""
    listed = {
        (group, resource, verb)
        for component in COMPONENTS
        if component.role is Role.CONTROLLERS
        for rule in component.rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    for controller in rules_by_controller():
        for rule in rules_by_controller()[controller]:
            for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                assert (group, resource, verb) in listed or verb in {"get", "list", "watch"}
