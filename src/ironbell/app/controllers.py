"""The controllers of `core`, each with an identity and a role of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, TypeAlias

from ironbell.api.client import Api
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.identity import ADMIN, Identity
from ironbell.apiserver.roles import Binding, Role, RoleAuthorizer, Rule
from ironbell.app import roles
from ironbell.app.components import (
    CAPT,
    CLUSTER_API,
    IPAM,
    KUBEADM_BOOTSTRAP,
    KUBEADM_CONTROL_PLANE,
    RUFIO,
    TINK_CONTROLLER,
)
from ironbell.app.node_images import image_askers
from ironbell.app.provider_roles import give_provider_roles
from ironbell.app.rendering_pool import RenderingPool
from ironbell.app.value_schemas import VariableSchemas
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness
from ironbell.contract.node_images import NO_IMAGES, ImageSource
from ironbell.contract.racks import INSTALLS_PER_RACK
from ironbell.controllers.capi import controllers as capi
from ironbell.controllers.capt import controllers as capt
from ironbell.controllers.ipam import controllers as ipam
from ironbell.controllers.kubeadm import controllers as kubeadm
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.connect import connect
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.controller import Controller
from ironbell.kube.runtime import Manager
from ironbell.workload.access import Workloads
from ironbell.workload.etcd_forward import ForwardedEtcd
from ironbell.workload.following import follow, kubeconfigs_from
from ironbell.workload.kubeconfigs import http_link

BMC_ACCESS = "rufio-access"
WORKLOAD_ACCESS = "workload-access"
BOOTSTRAP_DATA = "capt-bootstrap-data"

PolicyRules = Sequence[Mapping[str, Sequence[str]]]


_WRITES: Mapping[str, Mapping[str, PolicyRules]] = {
    TINK_CONTROLLER.name: tink.WRITES,
    RUFIO.name: rufio.WRITES,
    CLUSTER_API.name: capi.WRITES,
    KUBEADM_BOOTSTRAP.name: kubeadm.BOOTSTRAP_WRITES,
    KUBEADM_CONTROL_PLANE.name: kubeadm.CONTROL_PLANE_WRITES,
    CAPT.name: capt.WRITES,
    IPAM.name: ipam.WRITES,
}


def rules_by_controller(without: Collection[str] = ()) -> dict[str, PolicyRules]:
    """What each controller may write, and what opens sessions with BMCs and workload clusters may read; but for those
    of the components in `without`."""
    written = (rules for name, rules in _WRITES.items() if name not in without)
    return {
        **dict(chain.from_iterable(rules.items() for rules in written)),
        BMC_ACCESS: rufio.ACCESS_READS,
        WORKLOAD_ACCESS: [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
        BOOTSTRAP_DATA: capt.BOOTSTRAP_DATA_READS,
    }


def identity(controller: str) -> Identity:
    """Who a controller is to the API."""
    return Identity(roles.service_account_user(controller), roles.SERVICE_GROUPS)


def grant_controllers(authorizer: RoleAuthorizer, without: Collection[str] = ()) -> None:
    """Give each controller that runs its role."""
    for name, rules in rules_by_controller(without).items():
        role = Role(f"ironbell:{name}", tuple(_rule(rule) for rule in rules))
        authorizer.grant(role, [Binding(role.name, users=(identity(name).user,))])


def provider_accounts(without: Collection[str] = ()) -> list[tuple[str, str]]:
    """ServiceAccounts of what looks up or writes objects of providers."""
    writers = [
        identity(name)
        for name, rules in rules_by_controller(without).items()
        if any("*" in rule["resources"] and "infrastructure.cluster.x-k8s.io" in rule["apiGroups"] for rule in rules)
    ]
    users = [one.user.split(":") for one in (roles.READER, *writers)]
    return [(namespace, name) for *_words, namespace, name in users]


async def run_controllers(
    server: ApiServer,
    authorizer: RoleAuthorizer,
    clock: Clock,
    randomness: Randomness,
    ready: Callable[[], None],
    without: Collection[str] = (),
    metadata_url: str = "",
    installs_per_rack: int = INSTALLS_PER_RACK,
    images: ImageSource = NO_IMAGES,
) -> None:
    """Run the controllers, but for those of the components in `without`, until cancelled; `ready` is called when all
    of them work. `metadata_url` is where machines reach the metadata service; empty if that is not known.
    `installs_per_rack` bounds how many servers of a rack are installed at the same time; 0 does not.
    `images` is where machines get images that nobody names."""
    grant_controllers(authorizer, without)
    await give_provider_roles(server.client(ADMIN), provider_accounts(without))
    manager = Manager(server.client(roles.READER), component="ironbell", clock=clock, randomness=randomness)
    made = _controllers(manager, server, clock, randomness, without, metadata_url, installs_per_rack, images)
    async with made, asyncio.TaskGroup() as group:
        announce = group.create_task(_announce(manager, ready), name="announce")
        try:
            await manager.run()
        finally:
            announce.cancel()


RunControllers: TypeAlias = Callable[
    [ApiServer, RoleAuthorizer, Clock, Randomness, Callable[[], None], Collection[str], str, int, ImageSource],
    Coroutine[Any, Any, None],
]


async def _announce(manager: Manager, ready: Callable[[], None]) -> None:
    await manager.wait_ready()
    ready()


@asynccontextmanager
async def _controllers(
    manager: Manager,
    server: ApiServer,
    clock: Clock,
    randomness: Randomness,
    without: Collection[str],
    metadata_url: str,
    installs_per_rack: int,
    images: ImageSource,
) -> AsyncIterator[None]:
    """Add the controllers to the manager; what they hold open is closed when the block is left."""
    rendering = RenderingPool(clock=clock)

    def api_of(controller: str) -> Api:
        return server.client(identity(controller))

    reader = server.client(roles.READER)
    access = BmcAccess(api_of(BMC_ACCESS), connect)
    workloads = Workloads(http_link, kubeconfigs_from(api_of(WORKLOAD_ACCESS)), clock=clock, randomness=randomness)
    etcd = ForwardedEtcd(workloads, api_of(WORKLOAD_ACCESS), clock)
    follow(workloads, manager.informers)
    made: Mapping[str, Callable[[], Sequence[Controller]]] = {
        TINK_CONTROLLER.name: lambda: tink.controllers(rendering, rendering.parse, api_of),
        RUFIO.name: lambda: rufio.controllers(access, clock, api_of),
        CLUSTER_API.name: lambda: capi.controllers(workloads, reader, clock, api_of, VariableSchemas()),
        KUBEADM_BOOTSTRAP.name: lambda: kubeadm.bootstrap_controllers(workloads, reader, clock, randomness, api_of),
        KUBEADM_CONTROL_PLANE.name: lambda: kubeadm.control_plane_controllers(
            workloads, etcd.connect, reader, clock, api_of
        ),
        CAPT.name: lambda: capt.controllers(
            api_of(BOOTSTRAP_DATA),
            metadata_url,
            api_of,
            at_once=installs_per_rack,
            images=images,
            image_askers=image_askers(images),
            workloads=workloads,
        ),
        IPAM.name: lambda: ipam.controllers(reader, api_of),
    }
    for name, make in made.items():
        for controller in make() if name not in without else ():
            manager.add(controller)
    if TINK_CONTROLLER.name not in without:
        rendering.start()
    try:
        yield
    finally:
        await rendering.close()
        await workloads.close()
        await access.close()


def _rule(rule: Mapping[str, Sequence[str]]) -> Rule:
    return Rule(tuple(rule["verbs"]), tuple(rule["resources"]), tuple(rule["apiGroups"]))
