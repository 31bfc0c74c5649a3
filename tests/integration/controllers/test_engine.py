"""Workflow, Job, Task and Machine controllers together, under the real runtime, each with its role and nothing more: on
the embedded API, and on a real kube-apiserver with the tokens of their ServiceAccounts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import MACHINE, PowerState
from ironbell.api.bmc.task import TASK
from ironbell.api.client import Api, NotFound
from ironbell.api.core import EVENT, SECRET
from ironbell.api.crd.document import crd_document
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.template import TEMPLATE, Template
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow, WorkflowAction, WorkflowTask
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.access.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.core import ApiServer
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SeededRandomness, SystemRandomness
from ironbell.bmc.driver import AuthenticationError
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.operation import Operation, SetBootDevice, SetPower, describe
from ironbell.controllers.rufio.secret import Credentials
from ironbell.controllers.tink import controllers as tink
from ironbell.controllers.tink.render import Rendered, RenderError
from ironbell.kube.cache.caches import Informers
from ironbell.kube.client import Client
from ironbell.kube.testing import running
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.site.components import OnCluster
from support.waiting import until

BMC_ACCESS = Identity("bmc-access", ("system:authenticated",))
READER = Identity("reader", ("system:authenticated",))
NETBOOT = {"toggleAllowNetboot": True, "bootMode": "netboot"}


@dataclass
class Bmc:
    """A BMC with one machine; satisfies the driver's interface."""

    password: str = "secret"
    power: PowerState = PowerState.ON
    next_boot: str = ""
    booted: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    sessions: int = 0

    async def connect(self, _connection: Connection, credentials: Credentials) -> Bmc:
        await asyncio.sleep(0)
        if credentials.password != self.password:
            raise AuthenticationError("10.0.0.1: login refused")
        self.sessions += 1
        return self

    async def power_state(self) -> PowerState:
        await asyncio.sleep(0)
        return self.power

    async def operate(self, operation: Operation) -> None:
        await asyncio.sleep(0)
        self.done.append(describe(operation))
        if isinstance(operation, SetBootDevice):
            self.next_boot = operation.device
        elif isinstance(operation, SetPower):
            if operation.action is PowerAction.ON:
                self.booted.append(self.next_boot or "disk")
                self.next_boot = ""
            self.power = PowerState.ON if operation.action is PowerAction.ON else PowerState.OFF

    async def close(self) -> None:
        self.sessions -= 1


class Lines:
    """A template engine of one line per action; the first line is the agent."""

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        await self.parse(template.spec.data, template.metadata.namespace)
        agent_id, *actions = template.spec.data.splitlines()
        made = [WorkflowAction(id="", name=action, image=f"quay.io/actions/{action}") for action in actions]
        return Rendered([WorkflowTask(name="install", id="", agent_id=agent_id, actions=made)])

    async def media_url(self, text: str, hardware: Hardware) -> str:
        return text

    async def parse(self, text: str, namespace: str) -> None:
        if "{{" in text:
            raise RenderError("template line 2: unexpected end")


def _role(name: str, rules: Sequence[Mapping[str, Sequence[str]]]) -> Role:
    return Role(name, tuple(Rule(tuple(r["verbs"]), tuple(r["resources"]), tuple(r["apiGroups"])) for r in rules))


def authorizer() -> RoleAuthorizer:
    """Every controller may write what it says it writes, and nothing else."""
    made = RoleAuthorizer()
    for name, rules in {
        **tink.PERMISSIONS.writes,
        **rufio.PERMISSIONS.writes,
        "bmc-access": rufio.PERMISSIONS.identities[rufio.ACCESS],
    }.items():
        made.grant(_role(name, rules), [Binding(name, users=(name,))])
    read = [
        {"apiGroups": ["tinkerbell.org", "bmc.tinkerbell.org"], "resources": ["*"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    made.grant(_role("reader", read), [Binding("reader", users=("reader",))])
    return made


@dataclass
class Engine:
    """What a test sees."""

    client: Client
    informers: Informers
    bmc: Bmc

    def find(self, name: str = "wf") -> Workflow:
        found = self.informers.of(WORKFLOW).store.get(("default", name))
        assert found is not None
        return found

    def is_in(self, state: str) -> Callable[[], bool]:
        return lambda: (
            self.informers.of(WORKFLOW).store.get(("default", "wf")) is not None and (self.find().status.state == state)
        )

    async def add(self, kind: Any, name: str, **parts: Any) -> None:
        await self.client.create(kind, {"metadata": {"name": name, "namespace": "default"}, **parts})

    async def site(self, *, password: str = "secret") -> None:  # noqa: S107
        """One machine with its BMC."""
        await self.add(SECRET, "s1", stringData={"username": "admin", "password": password})
        connection = {"host": "10.0.0.1", "insecureTLS": True, "authSecretRef": {"name": "s1", "namespace": "default"}}
        await self.add(MACHINE, "bmc1", spec={"connection": connection})
        interface = {"dhcp": {"mac": "02:00:00:00:00:01", "uefi": True}}
        reference = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc1"}
        await self.add(HARDWARE, "m1", spec={"bmcRef": reference, "interfaces": [interface]})
        await self.add(TEMPLATE, "t", spec={"data": "02:00:00:00:00:01\nstream\nwrite"})

    async def workflow(self, **spec: Any) -> None:
        await self.add(WORKFLOW, "wf", spec={"templateRef": "t", "hardwareRef": "m1", **spec})

    async def report(self, states: Sequence[str]) -> None:
        """What the workflow service writes."""
        workflow = await self.client.get(WORKFLOW, "default", "wf")
        tasks = [{"id": t.id, "name": t.name, "agentID": t.agent_id} for t in workflow.status.tasks]
        known = workflow.status.tasks[0].actions
        tasks[0]["actions"] = [  # type: ignore[assignment]
            {"id": a.id, "name": a.name, "image": a.image, "state": state}
            for a, state in zip(known, states, strict=True)
        ]
        done = all(state == "SUCCESS" for state in states)
        bad = next((state for state in states if state in ("FAILED", "TIMEOUT")), "")
        number = next((n for n, state in enumerate(states) if state != "SUCCESS"), len(states) - 1)
        current = {"taskID": tasks[0]["id"], "actionID": known[number].id, "state": states[number]}
        status = {"state": bad or ("POST" if done else "RUNNING"), "tasks": tasks, "currentState": current}
        await self.client.merge_patch(WORKFLOW, "default", "wf", body={"status": status}, subresource="status")


MakeEngine: TypeAlias = "Callable[..., AbstractAsyncContextManager[Engine]]"


@pytest.fixture(params=["embedded", "real"])
def engine(request: pytest.FixtureRequest) -> MakeEngine:
    """Makes an engine on one API; options are the manager's."""
    if request.param == "embedded":
        return embedded_engine
    return partial(real_engine, request.getfixturevalue("on_cluster"))


@asynccontextmanager
async def embedded_engine(**options: Any) -> AsyncIterator[Engine]:
    definitions = [crd_document(kind) for kind in KINDS]
    clock = SystemClock()
    async with ApiServer.open(
        None, clock=clock, randomness=SystemRandomness(), definitions=definitions, authorizer=authorizer()
    ) as server:

        def api_of(name: str) -> Api:
            return server.client(Identity(name, ("system:authenticated",)))

        bmc = Bmc()
        access = BmcAccess(server.client(BMC_ACCESS), bmc.connect)
        everything = [
            *tink.controllers(Lines(), Lines().parse, api_of),
            *rufio.controllers(access, clock, api_of),
        ]
        async with running(server.client(READER), *everything, **options) as manager:
            yield Engine(Client(server.client(ADMIN)), manager.informers, bmc)
        await access.close()
        assert bmc.sessions == 0


@asynccontextmanager
async def real_engine(cluster: OnCluster, **options: Any) -> AsyncIterator[Engine]:
    """As in pods: a process per component has one ServiceAccount's token, for reading and for writing."""

    def as_itself(_controller: str) -> None:
        return None

    bmc = Bmc()
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(HttpApi(from_kubeconfig(cluster.admin)))
        informers = await stack.enter_async_context(_watching(admin))
        apis = [
            await stack.enter_async_context(HttpApi(from_kubeconfig(cluster.token(f"ironbell-{word}"))))
            for word in ("tink-controller", "rufio")
        ]
        access = BmcAccess(apis[1], bmc.connect)
        stack.push_async_callback(access.close)
        for api, controllers in zip(
            apis,
            (
                tink.controllers(Lines(), Lines().parse, as_itself),
                rufio.controllers(access, SystemClock(), as_itself),
            ),
            strict=True,
        ):
            await stack.enter_async_context(running(api, *controllers, **options))
        client = Client(admin)
        # what other tests have left in the namespace of a cluster that all share
        await _empty(client, informers)
        try:
            yield Engine(client, informers, bmc)
        finally:
            await _empty(client, informers)
    assert bmc.sessions == 0


@asynccontextmanager
async def _watching(api: Api) -> AsyncIterator[Informers]:
    informers = Informers(api, namespace="default")
    kinds: tuple[Kind[Any], ...] = (WORKFLOW, JOB, TASK, MACHINE, HARDWARE, TEMPLATE, SECRET)
    tasks = [asyncio.create_task(informers.of(kind).run()) for kind in kinds]
    try:
        for kind in kinds:
            await informers.of(kind).wait_synced()
        yield informers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _empty(client: Client, informers: Informers) -> None:
    """Leave nothing for the next test, while the controllers are there to let go."""
    for informer in informers:
        for namespace, name in informer.store.held_keys():
            with suppress(NotFound):
                await client.delete(informer.kind, namespace, name)
        await until(lambda informer=informer: not informer.store.list())  # type: ignore[misc]
    for event in (await client.list(EVENT, "default")).items:
        with suppress(NotFound):
            await client.delete(EVENT, *event.key)


async def pxe(engine: Engine) -> list[bool | None]:
    hardware = await engine.client.get(HARDWARE, "default", "m1")
    return [i.netboot.allow_pxe if i.netboot else None for i in hardware.spec.interfaces]


async def install(engine: Engine) -> None:
    await engine.site()
    await engine.workflow(bootOptions=NETBOOT)
    await until(engine.is_in("PENDING"))
    assert await pxe(engine) == [True]
    await engine.report(["RUNNING", "PENDING"])
    await until(lambda: any(c.reason == "ActionsRunning" for c in engine.find().status.conditions))
    await engine.report(["SUCCESS", "PENDING"])
    await engine.report(["SUCCESS", "SUCCESS"])
    await until(engine.is_in("SUCCESS"))
    assert await pxe(engine) == [False]
    assert engine.bmc.done == ["power off", "boot device pxe", "power on"]
    assert engine.bmc.booted == ["pxe"]


async def test_a_machine_is_booted_installed_and_let_go(engine: MakeEngine) -> None:
    async with engine() as made:
        await install(made)
        machines = made.informers.of(MACHINE).store
        await until(lambda: machines.list()[0].status.power_state == "on")
        hardware = await made.client.get(HARDWARE, "default", "m1")
        assert hardware.status.state == "Ready"
        template = await made.client.get(TEMPLATE, "default", "t")
        assert template.status.state == "Ready"
        await until(lambda: not made.find().metadata.finalizers)
        await until(lambda: "ironbell.dev/history" in _annotations(made))


def _annotations(made: Engine) -> dict[str, str]:
    found = made.informers.of(HARDWARE).store.get(("default", "m1"))
    assert found is not None
    return found.metadata.annotations


@pytest.mark.parametrize("seed", range(3))
async def test_caches_that_lag_at_random_change_nothing(engine: MakeEngine, seed: int) -> None:
    source = SeededRandomness(seed)
    async with engine(lag_s=lambda: source.fraction() * 0.02) as made:
        await install(made)


async def test_a_wrong_password_is_named_and_its_correction_is_enough(engine: MakeEngine) -> None:
    async with engine() as made:
        await made.site(password="wrong")
        store = made.informers.of(MACHINE).store
        await until(lambda: bool(store.list()) and bool(store.list()[0].status.conditions))
        (condition,) = store.list()[0].status.conditions
        assert (condition.status, condition.message.partition(":")[0]) == ("False", "BMCAuthenticationFailed")
        await made.workflow(bootOptions=NETBOOT)
        await until(lambda: bool(made.informers.of(TASK).store.list()))
        await made.client.merge_patch(SECRET, "default", "s1", body={"stringData": {"password": "secret"}})
        await until(made.is_in("PENDING"))
        await until(lambda: store.list()[0].status.conditions[0].status == "True")


async def test_a_template_that_does_not_parse_is_told_and_ends_its_workflow(engine: MakeEngine) -> None:
    async with engine() as made:
        await made.site()
        await made.client.merge_patch(TEMPLATE, "default", "t", body={"spec": {"data": "a\n{{"}})
        await made.workflow()
        await until(made.is_in("FAILED"))
        assert "line 2" in made.find().status.conditions[0].message
        templates = made.informers.of(TEMPLATE).store
        await until(lambda: templates.list()[0].status.state == "Error")


async def test_a_workflow_that_is_deleted_takes_its_jobs_and_tasks_along_and_forbids_netboot(
    engine: MakeEngine,
) -> None:
    async with engine() as made:
        await made.site()
        await made.workflow(bootOptions=NETBOOT)
        await until(made.is_in("PENDING"))
        await made.client.delete(WORKFLOW, "default", "wf")
        stores = [made.informers.of(kind).store for kind in (WORKFLOW, JOB, TASK)]
        await until(lambda: not any(store.list() for store in stores))
        assert await pxe(made) == [False]


async def test_transitions_are_told_by_events(engine: MakeEngine) -> None:
    async with engine() as made:
        await install(made)
        wanted = {"Preparing", "AgentNotSeen", "ActionsRunning", "Complete", "JobCompleted"}

        async def are_recorded() -> bool:
            reasons = {event.reason for event in (await made.client.list(EVENT, "default")).items}
            assert wanted <= reasons
            return True

        await until(are_recorded)
