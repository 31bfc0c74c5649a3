"""A second owner of servers beside the TinkerbellMachine: Hosts of a made-up kind, and the controller that serves them.

All that it adds to `provisioner.lifecycle` is the translation of a Host into what is wanted, and of a step into its
status.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from msgspec import field

from ironbell.api.client import Api
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.kind import Kind
from ironbell.api.meta import Condition, LabelSelector, Model, Resource
from ironbell.base.labels import SelectorError
from ironbell.contract.selectors import compiled
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import Decision, Fields, Key, MergePatch, do
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.manager.controller import Controller
from ironbell.kube.patches import status_change
from ironbell.kube.reconciler import Cache, Declaration
from ironbell.provisioner.default_template import Inputs, default_template
from ironbell.provisioner.effects import performers
from ironbell.provisioner.lifecycle.host import HostState, HostWish, Step
from ironbell.provisioner.lifecycle.names import hardware_key, provider_id
from ironbell.provisioner.lifecycle.observe import Lifecycle
from ironbell.provisioner.lifecycle.owner import Owner, OwnerKind, OwnerStatus
from ironbell.provisioner.lifecycle.selection import ANY_SERVER, Wish
from ironbell.provisioner.lifecycle.stages import next_step

IMAGE: Final = Inputs("host", "http://192.0.2.1:7080/images/host.gz", "/dev/sda", "http://192.0.2.1:7080")


class HostSpec(Model, frozen=True):
    """Which server a Host wants, and which it has."""

    selector: LabelSelector = LabelSelector()
    user_data: str = ""
    """Name of the Secret with its user data."""
    provider_id: str = field(default="", name="providerID")


class HostStatus(Model, frozen=True):
    """How far a Host is."""

    ready: bool = False
    phase: str = ""
    conditions: list[Condition] = []  # noqa: RUF012 - msgspec copies it


class Host(Resource, frozen=True):
    """A server with a system of one's own."""

    spec: HostSpec = HostSpec()
    status: HostStatus = HostStatus()


HOST: Final[Kind[Host]] = Kind("demo.ironbell.dev", "v1", "Host", "hosts", Host, has_status=True)
OWNERS: Final = OwnerKind(
    kind=HOST,
    finalizer="demo.ironbell.dev/host",
    name_label="demo.ironbell.dev/host-name",
    namespace_label="demo.ironbell.dev/host-namespace",
    status_of=lambda host: OwnerStatus(
        hardware_key(host.spec.provider_id), host.status.ready, host.status.phase, host.status.conditions
    ),
    wish_key=lambda host: msgspec.json.encode(host.spec.selector).decode(),
    cluster_of=lambda host: (host.metadata.namespace, ""),
)
LIFECYCLE: Final = Lifecycle(OWNERS)


@dataclass(frozen=True, slots=True)
class Observed:
    """A Host, its Secret, and what is known of its server."""

    host: Host
    secret: SecretMetadata | None
    state: HostState


class HostReconciler:
    """Claims a server for a Host, has it installed, and releases it."""

    name = "demo-host"
    declaration = Declaration(HOST, watches=LIFECYCLE.watches, indexes=LIFECYCLE.indexes)

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        host = cache.get(HOST, *key)
        if host is None:
            return None
        secret = cache.get(SECRET_METADATA, key[0], host.spec.user_data)
        return Observed(host, secret, LIFECYCLE.observe(cache, host, namespace=key[0]))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        owner = Owner(OWNERS, observed.host)
        return _decision(observed.host, next_step(owner, _wish(owner, observed), observed.state, now), now)


def _wish(owner: Owner, observed: Observed) -> HostWish:
    servers, problem = ANY_SERVER, ""
    try:
        required = (compiled(observed.host.spec.selector),)
        servers = Wish(required, namespace=observed.host.metadata.namespace, claims=observed.state.claims)
    except SelectorError as error:
        problem = f"spec.selector: {error}"
    return HostWish(
        releases=is_deleting(observed.host),
        servers=servers,
        servers_problem=problem,
        record=_record(owner, observed.state),
        bootstrap=observed.secret,
        template=_template,
    )


def _record(owner: Owner, state: HostState) -> MergePatch | None:
    if state.hardware is None or owner.obj.spec.provider_id:
        return None
    return owner.patch({"spec": {"providerID": provider_id(state.hardware)}})


def _template(metadata: Fields, _boot: Fields) -> Fields:
    return {"metadata": metadata, "spec": {"data": default_template(IMAGE)}}


def _decision(host: Host, step: Step, now: datetime) -> Decision:
    if not step.is_reported:
        return do(*step.actions)
    conditions = list(host.status.conditions)
    for condition in step.conditions:
        conditions = set_condition(conditions, condition, now=now)
    ready, phase = host.status.ready or step.is_provisioned, step.phase or host.status.phase
    status = status_change(HOST, host, host.status, HostStatus(ready, phase, conditions))
    return do(*step.actions, status, needs=step.needs, waiting=step.waiting, requeue_after_s=step.after_s)


def controllers(api: Api) -> list[Controller]:
    """The controller of Hosts."""
    return [Controller(HostReconciler(), performers=performers(api))]
