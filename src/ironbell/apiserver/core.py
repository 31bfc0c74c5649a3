"""The embedded API server, put together: store, resources, verbs, garbage collection, namespace life.

Life cycle: `async with ApiServer.open(path, clock=..., randomness=...) as server`; leaving the block ends all watches,
finishes pending writes, and closes the database. An acknowledged write is on disk before its response is sent.

Failure modes: a write that cannot be stored (disk full, I/O error) is answered with `Unavailable`, and so is every
write that was decided on top of it; reads still show the stored state.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from ironbell.api.client import ApiError
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import RoleAuthorizer
from ironbell.apiserver.admission import Admission
from ironbell.apiserver.builtin.kinds import builtin_resources
from ironbell.apiserver.context import Context
from ironbell.apiserver.crds.install import Definitions, install
from ironbell.apiserver.crds.rules import CrdRules
from ironbell.apiserver.direct import DirectApi
from ironbell.apiserver.flowcontrol.keeper import Keeper
from ironbell.apiserver.flowcontrol.plan import FlowControl
from ironbell.apiserver.lifecycle.accounts import Accounts
from ironbell.apiserver.lifecycle.expiry import EventExpiry
from ironbell.apiserver.lifecycle.garbage import GarbageCollector
from ironbell.apiserver.lifecycle.scopes import Scopes
from ironbell.apiserver.policies.guard import ParameterGuard, is_policy
from ironbell.apiserver.policies.mutating import MutatingPolicies
from ironbell.apiserver.policies.plugin import AdmissionPolicies
from ironbell.apiserver.rbac.aggregation import Aggregation
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.rbac.bootstrap import bootstrap
from ironbell.apiserver.rbac.escalation import EscalationGuard, is_guarded
from ironbell.apiserver.resources import Convert, Resources
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.log import MemoryLog, Row
from ironbell.apiserver.store.retention import Retention
from ironbell.apiserver.store.sqlite import SqliteLog
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.subresources import Connects
from ironbell.apiserver.webhooks.client import WebhookClient
from ironbell.apiserver.webhooks.conversion import converter_for
from ironbell.apiserver.webhooks.dispatch import AdmissionWebhooks
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness

EVENT_SECONDS = 3600.0
_HOUSEKEEPING_S = 30.0


class ApiServer:
    """One embedded API server."""

    def __init__(self, context: Context, *, event_seconds: float = EVENT_SECONDS) -> None:
        self._context = context
        self._garbage = GarbageCollector(context)
        self._scopes = Scopes(context)
        self._expiry = EventExpiry(context, seconds=event_seconds)
        self._definitions = Definitions(context)
        self._aggregation = Aggregation(context)
        self._accounts = Accounts(context)
        self._flow_control = FlowControl()
        self._flow_keeper = Keeper(context, self._flow_control)
        self._webhook_client = WebhookClient(context.store, context.randomness)
        self._webhooks = AdmissionWebhooks(context, self._webhook_client)
        self._policies = AdmissionPolicies(context)
        self._mutating_policies = MutatingPolicies(context)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: Path | None,
        *,
        keys: KeyFile | None = None,
        clock: Clock,
        randomness: Randomness,
        definitions: Iterable[Mapping[str, Any]] = (),
        authorizer: RoleAuthorizer | None = None,
        compile_rule: CompileRule | None = None,
        conversions: Mapping[str, Convert] | None = None,
        retention: Retention | None = None,
        event_seconds: float = EVENT_SECONDS,
        contents: Sequence[Row] = (),
    ) -> AsyncIterator[ApiServer]:
        """Serve the database at `path` (created if missing), or one in memory if that is None. `keys` (created if
        missing) encrypts Secrets on disk.

        A server in memory may begin with the `contents` of another server's store: copying the default roles and other
        objects of a start takes a hundredth of the time that creating them takes.

        `definitions` are CustomResourceDefinitions that must exist as given; they are created or updated before the
        first request. `compile_rule` compiles validation rules; without it they are not evaluated. `conversions` bring
        objects of `plural.group` from one version to another, where more than the version's name differs. `authorizer`
        holds what the program itself grants, beside the roles that are stored.

        Raises:
            StorageError: the database cannot be opened.
            Invalid: a definition is not valid.
        """
        store = Store(SqliteLog(path, keys) if path is not None else MemoryLog(contents), retention=retention)
        context = Context(
            store,
            clock,
            randomness,
            authorizer=RbacAuthorizer(authorizer),
            compile_rule=compile_rule,
            conversions=conversions or {},
        )
        try:
            store.open(now=clock.monotonic())
            server = cls(context, event_seconds=event_seconds)
            server._prepare()
            async with server._working():
                await server._scopes.start()
                if not contents:
                    await bootstrap(context, context.authorizer.granted)
                    await server._flow_keeper.create()
                server._flow_keeper.start()
                server._accounts.start()
                await install(context, definitions)
                yield server
        finally:
            await store.close()

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(), name="apiserver")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self._webhook_client.close()
        if not task.cancelled():
            task.result()

    def _prepare(self) -> None:
        context = self._context
        rules = CrdRules(context.resources, context.clock, compile_rule=context.compile_rule)
        for versions in builtin_resources(rules):
            context.resources.set(versions)
        context.create_converter = lambda crd: converter_for(crd, self._webhook_client, context.randomness)
        context.authorizer.index.follow(context.store)
        self._flow_control.follow(context.store)
        # before the guard, which checks a role as webhooks have changed it
        self._policies.start()
        self._mutating_policies.start()
        self._webhooks.start()
        context.admission.mutating(is_guarded, EscalationGuard(context.authorizer))
        context.admission.mutating(is_policy, ParameterGuard(context))
        self._definitions.start()
        self._garbage.start()
        self._expiry.start()
        self._aggregation.start()

    async def _run(self) -> None:
        """Run the server's background work until it is cancelled; an unexpected error is logged at once."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._garbage.work.run(), name="apiserver garbage")
                group.create_task(self._scopes.work.run(), name="apiserver scopes")
                group.create_task(self._accounts.work.run(), name="apiserver accounts")
                group.create_task(self._aggregation.work.run(), name="apiserver role aggregation")
                group.create_task(self._flow_keeper.work.run(), name="apiserver flow control")
                group.create_task(self._housekeep(), name="apiserver housekeeping")
        except Exception:
            structlog.get_logger().exception("embedded api stopped cleaning up")
            raise

    async def _housekeep(self) -> None:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_S)
            self._context.store.housekeep(now=self._context.clock.monotonic())
            try:
                await self._expiry.expire()
            except* ApiError as errors:
                structlog.get_logger().warning("events not expired", cause=str(errors.exceptions[0]))

    async def define(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Create or update further CustomResourceDefinitions, so that they are as given.

        Raises:
            Invalid: a definition is not valid.
        """
        await install(self._context, definitions)

    def client(self, identity: Identity) -> DirectApi:
        """The API as an identity sees it, by direct call."""
        return DirectApi(self._context, identity)

    @property
    def context(self) -> Context:
        """The server's parts, for its HTTP face."""
        return self._context

    @property
    def accounts(self) -> Accounts:
        """The controller of the namespaces' ServiceAccounts."""
        return self._accounts

    @property
    def flow_control(self) -> FlowControl:
        """The plan of priority and fairness: flow schemas and their priority levels."""
        return self._flow_control

    @property
    def resources(self) -> Resources:
        return self._context.resources

    @property
    def admission(self) -> Admission:
        return self._context.admission

    @property
    def connects(self) -> Connects:
        return self._context.connects

    @property
    def authorizer(self) -> RbacAuthorizer:
        return self._context.authorizer

    @property
    def clock(self) -> Clock:
        return self._context.clock

    @property
    def randomness(self) -> Randomness:
        return self._context.randomness

    @property
    def resource_version(self) -> str:
        """The newest version that readers see."""
        return str(self._context.store.revision)

    @property
    def is_writable(self) -> bool:
        """Return whether the next write can probably be stored."""
        return self._context.store.is_writable

    @property
    def is_settled(self) -> bool:
        """Return whether the server has nothing left to clean up: for tests."""
        works = (
            self._garbage.work, self._scopes.work, self._aggregation.work, self._accounts.work, self._flow_keeper.work,
        )  # fmt: skip
        return all(work.is_idle for work in works)
