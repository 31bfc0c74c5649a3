"""The controller of Machines: reports whether the BMC can be reached and whether the server is powered on.

The power state is a fact. It is queried every half hour, sooner while the BMC does not respond, and at once when the
connection, its Secret or the power itself (by a Task) has changed. A wrong password is tried once per half hour and
with every change of the Secret: more would lock the account. A Task whose login is accepted ends that wait.

Before a password is sent for the first time, the BMC's address is recorded (`provisioner.bmc_address`).

Source: tinkerbell/tinkerbell: rufio/internal/controller/machine.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.bmc.machine import MACHINE, Machine, MachineCondition, MachineConditionType, PowerState
from ironbell.api.bmc.task import TASK, Task
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import Condition, Resource
from ironbell.api.tinkerbell.names import ANNOTATION_DISABLED
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.base.errors import IronbellError
from ironbell.bmc.driver import BmcProblem, problem_of, reported, reported_problem
from ironbell.contract.servers.ineffective import FIELDS_WITHOUT_EFFECT, listed, of_connection
from ironbell.controllers.rufio.attempt import last_accepted, last_effect
from ironbell.controllers.rufio.names import ANNOTATION_ATTEMPT, ANNOTATION_MACHINE
from ironbell.controllers.rufio.target import USE_TIMEOUT_S, PowerOf, Target, secret_keys, target_of
from ironbell.kube.decision import Decision, Fact, Key, Need, patch
from ironbell.kube.draft import Draft, replace
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.bmc_address import ADDRESS, pin_of, to_record

POWER_INTERVAL_S: Final = 1800.0
UNREACHABLE_INTERVAL_S: Final = 60.0
"""Largest delay between queries of a BMC that does not respond."""
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
    """A Machine and its power state."""

    machine: Machine
    target: Target
    power: Fact[PowerState] | None = None
    changed_at: datetime | None = None
    """Time of the last possible change of the power by a Task; at least the creation time of the Machine."""
    accepted_at: datetime | None = None
    """Time at which the BMC last accepted an operation of a Task."""


def _of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    return [machine.key for machine in cache.indexed(BY_SECRET, "/".join(secret.key))]


def _of_task(task: Task, _cache: Cache) -> Iterable[Key]:
    namespace, _, name = task.metadata.annotations.get(ANNOTATION_MACHINE, "").partition("/")
    return [(namespace, name)] if name else []


def _reported_by(task: Task) -> tuple[str | None, ...]:
    """The part of a Task that concerns the BMC; most of its writes concern the Task itself."""
    annotations = task.metadata.annotations
    return annotations.get(ANNOTATION_MACHINE), annotations.get(ANNOTATION_ATTEMPT)


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


class MachineReconciler:
    """Keeps the condition `Contactable` and the power state of a Machine up to date."""

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
        draft, power = Draft(MACHINE, observed.machine, now, set_condition=_set_condition), observed.power
        need = Need(PowerOf(observed.target), self._interval_s, observed.changed_at, USE_TIMEOUT_S)
        address = to_record(draft.obj)
        if ANNOTATION_DISABLED in draft.metadata.annotations:
            draft.wait("Disabled", f"Annotation {ANNOTATION_DISABLED} is set.")
        elif address:
            record = {"metadata": {"annotations": {ADDRESS: address}}}
            draft.first.append(patch(MACHINE, draft.obj, record, locked=True))
        elif power is None or (power.error is None and power.value is None) or _precedes(power, draft.obj):
            draft.wait("Asking", "Querying the power state.")
            draft.need(need)
        elif power.error is not None:
            self._report_error(draft, observed, power.error, power.error_at or now)
        elif not power.fresh(now, self._interval_s, observed.changed_at):
            draft.wait("Asking", "Querying the power state again.")
            draft.need(need)
        else:
            _report(draft, "True", "", power.value or PowerState.UNKNOWN)
            draft.need(need)
            old = contactable(draft.obj)
            if old is not None and old.status != "True":
                draft.emit("Contactable", f"The BMC responds again. The power is {power.value}.")
        return draft.decision()

    def _report_error(
        self, draft: Draft[Machine], observed: MachineObserved, error: IronbellError, failed_at: datetime
    ) -> None:
        problem, old = problem_of(error), contactable(draft.obj)
        ineffective = of_connection(draft.obj.spec.connection) if problem is BmcProblem.UNREACHABLE else []
        remedy = f"; {listed(ineffective)}" if ineffective else ""
        _report(draft, "False", reported(problem, f"{error.message}{remedy}")[:MESSAGE_LIMIT], PowerState.UNKNOWN)
        draft.wait(problem, error.message)
        if old is None or old.status != "False" or reported_problem(old.message) != problem:
            draft.emit(problem, error.message[:MESSAGE_LIMIT], warning=True)
        if problem in (BmcProblem.CREDENTIALS, BmcProblem.ADDRESS):
            return
        left_s = self._interval_s - (draft.now - failed_at).total_seconds()
        has_entered = observed.accepted_at is not None and observed.accepted_at > failed_at
        if problem is BmcProblem.AUTHENTICATION and left_s > 0 and not has_entered:
            draft.requeue_after(left_s)
            return
        age_s = min(UNREACHABLE_INTERVAL_S, self._interval_s)
        draft.need(Need(PowerOf(observed.target), age_s, timeout_s=USE_TIMEOUT_S))


def created(obj: Resource) -> datetime | None:
    """Creation time of the object. Older facts were queried for another object."""
    since = obj.metadata.creation_timestamp
    return parse_rfc3339(since) if since else None


def _precedes(power: Fact[PowerState], machine: Machine) -> bool:
    """Return whether the error is of a query for a deleted Machine of the same name."""
    since = created(machine)
    return power.error_at is not None and since is not None and power.error_at < since


def contactable(machine: Machine) -> MachineCondition | None:
    """The condition `Contactable`, or None."""
    return next((c for c in machine.status.conditions if c.type == MachineConditionType.CONTACTABLE), None)


def _report(draft: Draft[Machine], value: str, message: str, power: PowerState) -> None:
    """Report the contact with the BMC, the power state, and fields of the connection without effect."""
    draft.set(MachineConditionType.CONTACTABLE, value, "", message)
    if ineffective := of_connection(draft.obj.spec.connection):
        draft.set(FIELDS_WITHOUT_EFFECT, "True", "", listed(ineffective))
    else:
        draft.drop(FIELDS_WITHOUT_EFFECT)
    draft.status = replace(draft.status, power_state=power)


def _set_condition(
    conditions: Sequence[MachineCondition], condition: Condition, *, now: datetime, generation: int
) -> Sequence[MachineCondition]:
    """Set a condition; its `lastUpdateTime` is the time of the last change of its status."""
    old = next((held for held in conditions if held.type == condition.type), None)
    since = old.last_update_time if old is not None and old.status == condition.status else None
    new = MachineCondition(
        type=condition.type, status=condition.status, last_update_time=since or rfc3339(now), message=condition.message
    )
    return [*conditions, new] if old is None else [new if held is old else held for held in conditions]
