"""The controllers of `core`, each with its own identity and role."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeAlias

from ironbell.api.client import Api
from ironbell.api.core import SECRET
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.app import roles
from ironbell.app.site.provider_roles import give_provider_roles
from ironbell.app.systems import SYSTEMS, systems_without
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness
from ironbell.contract.access import PolicyRule, PolicyRules, may, policy_rules
from ironbell.contract.system import DEFAULT_SETTINGS, Runtime, Settings
from ironbell.kube.manager.manager import Manager
from ironbell.workload.following import WORKLOAD_ACCESS


def rules_by_controller(without: Collection[str] = ()) -> dict[str, PolicyRules]:
    """The writes that each controller may do, except those of the systems in `without`, and the reads of further
    identities."""
    rules: dict[str, PolicyRules] = {}
    for system in systems_without(without):
        rules.update(system.permissions.load().writes)
    for system in SYSTEMS:
        rules.update(system.permissions.load().identities)
    return {**rules, WORKLOAD_ACCESS: policy_rules([may(SECRET, "get")])}


def identity(controller: str) -> Identity:
    """The identity of a controller at the API."""
    return Identity(roles.service_account_user(controller), roles.SERVICE_GROUPS)


def grant_controllers(authorizer: RoleAuthorizer, without: Collection[str] = ()) -> None:
    """Grant each controller that runs its role."""
    roles.grant_further_reads(authorizer, [rule for system in SYSTEMS for rule in system.permissions.load().reads])
    for name, rules in rules_by_controller(without).items():
        role = Role(f"ironbell:{name}", tuple(_rule(rule) for rule in rules))
        authorizer.grant(role, [Binding(role.name, users=(identity(name).user,))])


def provider_accounts(without: Collection[str] = ()) -> list[tuple[str, str]]:
    """ServiceAccounts of components that look up or write objects of providers."""
    writers = [
        identity(name)
        for name, rules in rules_by_controller(without).items()
        if any("*" in rule["resources"] and "infrastructure.cluster.x-k8s.io" in rule["apiGroups"] for rule in rules)
    ]
    users = [account.user.split(":") for account in (roles.READER, *writers)]
    return [(namespace, name) for *_words, namespace, name in users]


async def run_controllers(
    server: ApiServer,
    authorizer: RoleAuthorizer,
    clock: Clock,
    randomness: Randomness,
    ready: Callable[[], None],
    without: Collection[str] = (),
    settings: Settings = DEFAULT_SETTINGS,
) -> None:
    """Run the controllers, except those of the systems in `without`, until cancelled; `ready` is called when all of
    them are active."""
    grant_controllers(authorizer, without)
    await give_provider_roles(server.client(ADMIN), provider_accounts(without))
    manager = Manager(server.client(roles.READER), component="ironbell", clock=clock, randomness=randomness)

    def api_of(controller: str) -> Api:
        return server.client(identity(controller))

    reader = server.client(roles.READER)
    runtime = Runtime(reader, api_of, clock, randomness, manager.informers, settings)
    try:
        for system in systems_without(without):
            for controller in system.controllers.load()(runtime):
                manager.add(controller)
        async with asyncio.TaskGroup() as group:
            announce = group.create_task(_announce(manager, ready), name="announce")
            try:
                await manager.run()
            finally:
                announce.cancel()
    finally:
        await runtime.close()


RunControllers: TypeAlias = Callable[
    [ApiServer, RoleAuthorizer, Clock, Randomness, Callable[[], None], Collection[str], Settings],
    Coroutine[Any, Any, None],
]


async def _announce(manager: Manager, ready: Callable[[], None]) -> None:
    await manager.wait_ready()
    ready()


def _rule(rule: PolicyRule) -> Rule:
    return Rule(tuple(rule["verbs"]), tuple(rule["resources"]), tuple(rule["apiGroups"]))
