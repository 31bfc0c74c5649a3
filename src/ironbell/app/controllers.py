"""The controllers of `core`, each with an identity and a role of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ironbell.api.client import Api
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.identity import Identity
from ironbell.apiserver.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.app import roles
from ironbell.base.clock import Clock
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.runtime import Manager

if TYPE_CHECKING:
    from ironbell.app.rendering import TemplateEngine
    from ironbell.controllers.rufio.bmc_access import Connect

BMC_ACCESS = "rufio-access"

PolicyRules = Sequence[Mapping[str, Sequence[str]]]


def rules_by_controller() -> dict[str, PolicyRules]:
    """What each controller may write, and what opens BMC sessions may read."""
    return {**tink.WRITES, **rufio.WRITES, BMC_ACCESS: rufio.ACCESS_READS}


def identity(controller: str) -> Identity:
    """Who a controller is to the API."""
    return Identity(roles.service_account_user(controller), roles.WIRE_GROUPS)


def grant_controllers(authorizer: RoleAuthorizer) -> None:
    """Give each controller its role."""
    for name, rules in rules_by_controller().items():
        role = Role(f"ironbell:{name}", tuple(_rule(rule) for rule in rules))
        authorizer.grant(role, [Binding(role.name, users=(identity(name).user,))])


@asynccontextmanager
async def all_controllers(manager: Manager, server: ApiServer, clock: Clock) -> AsyncIterator[None]:
    """Add all controllers to the manager; what they hold open is closed when the block is left."""
    engine, connect = await asyncio.to_thread(_engines)

    def api_of(controller: str) -> Api:
        return server.client(identity(controller))

    access = BmcAccess(api_of(BMC_ACCESS), connect)
    for controller in (
        *tink.controllers(engine, engine.parse, api_of),
        *rufio.controllers(access, clock, api_of),
    ):
        manager.add(controller)
    try:
        yield
    finally:
        await access.close()


def _engines() -> tuple[TemplateEngine, Connect]:
    """The template engine and the BMC drivers: a good part of what there is to import, and nothing that the API needs
    before it can answer."""
    from ironbell.app.rendering import TemplateEngine
    from ironbell.controllers.rufio.connect import connect

    return TemplateEngine(), connect


def _rule(rule: Mapping[str, Sequence[str]]) -> Rule:
    return Rule(tuple(rule["verbs"]), tuple(rule["resources"]), tuple(rule["apiGroups"]))
