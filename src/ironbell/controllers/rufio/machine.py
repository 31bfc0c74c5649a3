"""The controller of Machines: is the BMC there, and is the machine behind it on?

The power state is a fact, asked every half hour, sooner while the BMC does not answer, at once when the connection, its
Secret or the power itself (by a Task) was changed. A wrong password is tried once per half hour and with every change
of the Secret: more would lock the account. A Task whose login is accepted ends that wait.

Before a password is sent for the first time, the address that it goes to is recorded (`provisioner.bmc_address`).

Source: tinkerbell/tinkerbell: rufio/internal/controller/machine.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.bmc.machine import MACHINE, Machine, MachineCondition, MachineConditionType, MachineStatus, PowerState
from ironbell.api.bmc.task import TASK, Task
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import Resource
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.base.errors import IronbellError
from ironbell.bmc.driver import Trouble, trouble_of
from ironbell.contract.servers.ineffective import FIELDS_WITHOUT_EFFECT, listed, of_connection
from ironbell.controllers.rufio.attempt import last_accepted, last_effect
from ironbell.controllers.rufio.limits import USE_TIMEOUT_S
from ironbell.controllers.rufio.names import ANNOTATION_ATTEMPT, ANNOTATION_MACHINE
from ironbell.controllers.rufio.target import PowerOf, Target, secret_keys, target_of
from ironbell.kube.decision import Decision, Emit, Fact, Key, Need, do, emit, patch, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.patches import status_change
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.bmc_address import ADDRESS, pin_of, to_record

POWER_INTERVAL_S: Final = 1800.0
UNREACHABLE_INTERVAL_S: Final = 60.0
"""A BMC that does not answer is asked with growing delays up to this."""
MESSAGE_LIMIT: Final = 1024

BY_SECRET: Final = Index(
    MACHINE,
    "rufio-secret",
    lambda machine: secret_keys(machine.spec.connection, machine.metadata.namespace),
)


def _machine_names(task: Task) -> list[str]:
    name = task.metadata.annotations.get(ANNOTATION_MACHINE)
    return [name] if name else []


TASKS_BY_MACHINE: Final = Index(TASK, "rufio-machine", _machine_names)


@dataclass(frozen=True, slots=True)
class MachineObserved:
    """A Machine, and what is known of its power state."""

    machine: Machine
    target: Target
    power: Fact[PowerState] | None = None
    changed_at: datetime | None = None
    """When a Task last changed the power, or may have; not before the Machine itself was created."""
    accepted_at: datetime | None = None
    """When the BMC last accepted an operation of a Task."""


def _of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    return [machine.key for machine in cache.indexed(BY_SECRET, "/".join(secret.key))]


def _of_task(task: Task, _cache: Cache) -> Iterable[Key]:
    namespace, _, name = task.metadata.annotations.get(ANNOTATION_MACHINE, "").partition("/")
    return [(namespace, name)] if name else []


def _reported_by(task: Task) -> tuple[str | None, ...]:
    """What a Task reports about the BMC; most of its writes are about the Task itself."""
    annotations = task.metadata.annotations
    return annotations.get(ANNOTATION_MACHINE), annotations.get(ANNOTATION_ATTEMPT)


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


class MachineReconciler:
    """Keeps `Contactable` and the power state of a Machine true."""

    name = "rufio-machine"
    declaration = Declaration(
        MACHINE,
        watches=(
            Watch(SECRET_METADATA, _of_secret),
            Watch(TASK, _of_task, changed(_reported_by, absent=(None, None))),
        ),
        indexes=(BY_SECRET, TASKS_BY_MACHINE),
    )

    def __init__(self, *, power_interval_s: float = POWER_INTERVAL_S) -> None:
        self._interval_s = power_interval_s

    def observe(self, cache: Cache, key: Key) -> MachineObserved | None:
        machine = cache.get(MACHINE, *key)
        if machine is None or is_deleting(machine):
            return None
        target = target_of(machine.spec.connection, machine.metadata.namespace, cache, pin_of(machine))
        tasks = cache.indexed(TASKS_BY_MACHINE, "/".join(key))
        changed_at = _latest([created(machine), *(last_effect(task) for task in tasks)])
        accepted_at = _latest(last_accepted(task) for task in tasks)
        power = cache.fact(PowerOf(target), self._interval_s)
        return MachineObserved(machine, target, power, changed_at, accepted_at)

    def decide(self, observed: MachineObserved, now: datetime) -> Decision:
        machine, power = observed.machine, observed.power
        if ANNOTATION_DISABLED in machine.metadata.annotations:
            return wait("Disabled", f"annotation {ANNOTATION_DISABLED} is set")
        address = to_record(machine)
        if address:
            return do(patch(MACHINE, machine, {"metadata": {"annotations": {ADDRESS: address}}}, locked=True))
        query = PowerOf(observed.target)
        ask = Need(query, self._interval_s, observed.changed_at, USE_TIMEOUT_S)
        if power is None or (power.error is None and power.value is None) or _is_from_before(power, machine):
            return wait("Asking", "the power state is being asked", needs=[ask])
        if power.error is not None:
            return self._unreachable(observed, power.error, power.error_at or now, now)
        if not power.fresh(now, self._interval_s, observed.changed_at):
            return wait("Asking", "the power state is being asked anew", needs=[ask])
        status = _with_ineffective(_contactable(machine.status, True, "", now), machine, now)
        status = msgspec.structs.replace(status, power_state=power.value or PowerState.UNKNOWN)
        return do(
            status_change(MACHINE, machine, machine.status, status),
            _told(machine, True, "Contactable", f"the BMC answers, power is {power.value}"),
            needs=[ask],
        )

    def _unreachable(
        self, observed: MachineObserved, error: IronbellError, failed_at: datetime, now: datetime
    ) -> Decision:
        machine, trouble = observed.machine, trouble_of(error)
        ineffective = of_connection(machine.spec.connection) if trouble is Trouble.UNREACHABLE else []
        remedy = f"; {listed(ineffective)}" if ineffective else ""
        message = f"{trouble}: {error.message}{remedy}"[:MESSAGE_LIMIT]
        status = _with_ineffective(_contactable(machine.status, False, message, now), machine, now)
        status = msgspec.structs.replace(status, power_state=PowerState.UNKNOWN)
        actions = (
            status_change(MACHINE, machine, machine.status, status),
            _told(machine, False, trouble, error.message[:MESSAGE_LIMIT]),
        )
        if trouble in (Trouble.CREDENTIALS, Trouble.ADDRESS):
            return wait(trouble, error.message, *actions)
        left_s = self._interval_s - (now - failed_at).total_seconds()
        has_entered = observed.accepted_at is not None and observed.accepted_at > failed_at
        if trouble is Trouble.AUTHENTICATION and left_s > 0 and not has_entered:
            return wait(trouble, error.message, *actions, requeue_after_s=left_s)
        again = Need(PowerOf(observed.target), min(UNREACHABLE_INTERVAL_S, self._interval_s), timeout_s=USE_TIMEOUT_S)
        return wait(trouble, error.message, *actions, needs=[again])


def created(obj: Resource) -> datetime | None:
    """When the object was created: what a BMC answered before that was answered to somebody else."""
    since = obj.metadata.creation_timestamp
    return parse_rfc3339(since) if since else None


def _is_from_before(power: Fact[PowerState], machine: Machine) -> bool:
    """Whether it is the error of an attempt for a deleted Machine of the same name."""
    since = created(machine)
    return power.error_at is not None and since is not None and power.error_at < since


def contactable(machine: Machine) -> MachineCondition | None:
    """The condition `Contactable`, if there is one."""
    return next((c for c in machine.status.conditions if c.type == MachineConditionType.CONTACTABLE), None)


def _with_ineffective(status: MachineStatus, machine: Machine, now: datetime) -> MachineStatus:
    """The status with the condition that lists fields without effect, or without it where there are none."""
    found = of_connection(machine.spec.connection)
    if found:
        return _with(status, FIELDS_WITHOUT_EFFECT, True, listed(found), now)
    others = [condition for condition in status.conditions if condition.type != FIELDS_WITHOUT_EFFECT]
    return msgspec.structs.replace(status, conditions=others)


def _contactable(status: MachineStatus, value: bool, message: str, now: datetime) -> MachineStatus:
    return _with(status, MachineConditionType.CONTACTABLE, value, message, now)


def _with(status: MachineStatus, kind: str, value: bool, message: str, now: datetime) -> MachineStatus:
    """The status with the condition set; `lastUpdateTime` is when its status last changed."""
    old = next((c for c in status.conditions if c.type == kind), None)
    since = old.last_update_time if old is not None and old.status == str(value) else None
    new = MachineCondition(type=kind, status=str(value), last_update_time=since or rfc3339(now), message=message)
    others = [new if c is old else c for c in status.conditions]
    return msgspec.structs.replace(status, conditions=[*others, new] if old is None else others)


def _told(machine: Machine, value: bool, reason: str, message: str) -> Emit | None:
    """An event when a BMC goes or comes back, or fails for another reason; nothing for one that answers at first."""
    old = contactable(machine)
    if value:
        if old is None or old.status == "True":
            return None
        return emit(MACHINE, machine, reason=reason, message=message)
    if old is not None and old.status == "False" and old.message.startswith(f"{reason}:"):
        return None
    return emit(MACHINE, machine, reason=reason, message=message, warning=True)
