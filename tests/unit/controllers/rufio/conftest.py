"""A scene for the BMC controllers: objects, and BMCs outside that do what a test tells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, Job
from ironbell.api.bmc.machine import MACHINE, Machine, PowerState
from ironbell.api.bmc.task import TASK, Task
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.bmc.driver import BmcError, BmcProblem, OutcomeUnknownError, UnconfirmedAddressError
from ironbell.controllers.rufio import attempt as attempts
from ironbell.controllers.rufio.job import JobReconciler
from ironbell.controllers.rufio.machine import MachineReconciler
from ironbell.controllers.rufio.operation import Operation, SetPower, describe
from ironbell.controllers.rufio.steps import OPERATE, Operate
from ironbell.controllers.rufio.target import PowerOf
from ironbell.controllers.rufio.task import TaskReconciler
from ironbell.kube.decision import Action
from ironbell.kube.testing import World

NAMESPACE = "default"


@dataclass
class FakeBmc:
    """One BMC and the machine behind it."""

    power: PowerState = PowerState.OFF
    done: list[str] = field(default_factory=list)
    logins: int = 0
    problem: BmcProblem | None = None
    """What every call ends in."""
    problem_left: int = 1_000_000
    """After how many calls the trouble is over."""
    ignores: set[str] = field(default_factory=set)
    """Operations that are accepted and not followed."""
    unknown: int = 0
    """How many operations are done but not answered."""

    def call(self) -> None:
        self.logins += 1
        if self.problem is not None and self.problem_left > 0:
            self.problem_left -= 1
            raise next(kind for kind in BmcError.__subclasses__() if kind.problem is self.problem)(
                f"10.0.0.1: {self.problem.name.lower()}"
            )

    def operate(self, operation: Operation) -> None:
        self.call()
        self.done.append(describe(operation))
        if describe(operation) not in self.ignores and isinstance(operation, SetPower):
            off = operation.action in (PowerAction.OFF, PowerAction.SOFT)
            self.power = PowerState.OFF if off else PowerState.ON
        if self.unknown:
            self.unknown -= 1
            raise OutcomeUnknownError("10.0.0.1: connection reset")


def operate(world: World, arguments: Operate) -> Sequence[Action]:
    try:
        world.outside[arguments.target.connection.host].operate(arguments.operation)
    except BmcError as error:
        outcome = attempts.failed(arguments.attempt, error.problem, error.message, world.now())
    else:
        outcome = attempts.accepted(arguments.attempt, world.now())
    return (attempts.store_outcome(arguments.task, outcome),)


def power_of(world: World, query: PowerOf) -> PowerState:
    target = query.target
    if target.pin is not None and (problem := target.pin.problem(target.connection)):
        raise UnconfirmedAddressError(problem)
    bmc: FakeBmc = world.outside[target.connection.host]
    bmc.call()
    return bmc.power


@dataclass
class Scene:
    """A world with BMCs, and what a test does to it."""

    world: World = field(
        default_factory=lambda: World(
            outside={"bmc1": FakeBmc(), "bmc2": FakeBmc()},
            performers={OPERATE: operate},
            resolvers={PowerOf: power_of},
        )
    )
    machines: MachineReconciler = field(default_factory=MachineReconciler)
    jobs: JobReconciler = field(default_factory=JobReconciler)
    tasks: TaskReconciler = field(default_factory=TaskReconciler)

    def __post_init__(self) -> None:
        self.world.api.serve([MACHINE, JOB, TASK, SECRET_METADATA])

    @property
    def bmc(self) -> FakeBmc:
        bmc: FakeBmc = self.world.outside["bmc1"]
        return bmc

    def secret(self, name: str = "s1") -> Any:
        return self.world.add(SECRET_METADATA, {"metadata": {"name": name, "namespace": NAMESPACE}})

    def connection(self, host: str = "bmc1") -> dict[str, Any]:
        return {"host": host, "insecureTLS": False, "authSecretRef": {"name": "s1", "namespace": NAMESPACE}}

    def machine(self, name: str = "bmc1") -> Machine:
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"connection": self.connection(name)}}
        return self.world.add(MACHINE, body)

    def job(self, name: str = "j1", *actions: Any, machine: str = "bmc1", annotations: Any = None) -> Job:
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}}
        tasks = list(actions) or [{"powerAction": "off"}, {"bootDevice": {"device": "pxe"}}, {"powerAction": "on"}]
        spec = {"machineRef": {"name": machine, "namespace": NAMESPACE}, "tasks": tasks}
        return self.world.add(JOB, {"metadata": metadata, "spec": spec})

    def task(self, action: Any, name: str = "t1", *, annotations: Any = None) -> Task:
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}}
        return self.world.add(TASK, {"metadata": metadata, "spec": {"task": action, "connection": self.connection()}})

    def settle(self, horizon_s: float = 0.0) -> None:
        self.world.settle(self.machines, self.jobs, self.tasks, horizon_s=horizon_s, max_rounds=5000)

    def the_machine(self, name: str = "bmc1") -> Machine:
        return self.world.require(MACHINE, NAMESPACE, name)

    def the_job(self, name: str = "j1") -> Job:
        return self.world.require(JOB, NAMESPACE, name)

    def the_task(self, name: str = "t1") -> Task:
        return self.world.require(TASK, NAMESPACE, name)

    def outcome(self, obj: Job | Task | Machine) -> dict[str, tuple[str, str]]:
        """Conditions by type: status and message."""
        return {c.type: (c.status, c.message) for c in obj.status.conditions}


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.secret()
    return made


@pytest.fixture(scope="session")
def make_scene() -> type[Scene]:
    return Scene
