"""The simulated provider's controllers, ready to be added to a manager of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ironbell.kube.manager.controller import Controller
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint, Place, PlaceQuery
from ironbell.lab.sim.cluster.host import HostQuery, HostState
from ironbell.lab.sim.provider import devcluster, devmachine
from ironbell.lab.sim.provider.devcluster import DevClusterReconciler
from ironbell.lab.sim.provider.devmachine import DevMachineReconciler
from ironbell.lab.sim.provider.kinds import GROUP

_READ: Final = ["get", "list", "watch"]
RULES: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": [GROUP], "resources": ["devclusters", "devmachines"], "verbs": [*_READ, "patch"]},
    {"apiGroups": [GROUP], "resources": ["devclusters/status", "devmachines/status"], "verbs": ["patch"]},
    {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters", "machines"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]
"""PolicyRules for the identity that they run under. Names of Secrets with bootstrap data are not known in advance."""


def controllers(
    cloud: Cloud, *, expose: Callable[[tuple[str, str]], Awaitable[Endpoint]], workers: int = 10
) -> list[Controller]:
    """The controllers.

    Args:
        cloud: the machines and clusters that they control.
        expose: creates the endpoint of a cluster's API, if it is missing, and returns it.
        workers: number of workers of each controller.
    """

    async def host(query: HostQuery) -> HostState | None:
        return cloud.state(query.uid)

    async def place(query: PlaceQuery) -> Place:
        endpoint = await expose(query.cluster.key)
        return Place(endpoint, cloud.cluster(query.cluster.key).down)

    return [
        Controller(
            DevClusterReconciler(),
            performers=devcluster.performers(cloud.remove_cluster, cloud.set_down),
            resolvers={PlaceQuery: place},
            workers=workers,
        ),
        Controller(
            DevMachineReconciler(),
            performers=devmachine.performers(cloud.power_on, cloud.release, cloud.lose),
            resolvers={HostQuery: host},
            feeds=(cloud.feed,),
            workers=workers,
        ),
    ]
