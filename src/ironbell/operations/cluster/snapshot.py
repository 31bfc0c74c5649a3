"""The objects of a cluster, read at one moment, and its kubeconfig."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

import msgspec

from ironbell.api.client import NotFound
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core import SECRET
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.clusters.secrets import VALUE, Purpose, secret_name
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.discovered import Discovered, NoSuchKindError, Object
from ironbell.operations.namespaces import elsewhere
from ironbell.operations.objects import find_object

PartKey = tuple[str, str, str]


class NoClusterError(IronbellError):
    """There is no such Cluster."""

    reason, retry = "NoCluster", Retry.NEVER

    def __init__(self, message: str, namespace: str, name: str) -> None:
        super().__init__(message)
        self.namespace, self.name = namespace, name


class NoKubeconfigYetError(IronbellError):
    """The cluster has no kubeconfig yet."""

    reason, retry = "NoKubeconfigYet", Retry.BACKOFF


@dataclass(frozen=True)
class Snapshot:
    """A Cluster and its dependents; the lists are sorted by name."""

    cluster: Object
    infrastructure: Object | None = None
    control_plane: Object | None = None
    deployments: tuple[Object, ...] = ()
    sets: tuple[Object, ...] = ()
    pools: tuple[Object, ...] = ()
    machines: tuple[Object, ...] = ()
    parts: dict[PartKey, Object] = field(default_factory=dict)
    """Infrastructure and bootstrap objects of the Machines by group, kind and name."""

    @property
    def has_topology(self) -> bool:
        """Return whether a ClusterClass defines the cluster's objects."""
        return bool(self.cluster.get("spec", {}).get("topology", {}).get("classRef", {}).get("name"))


async def get_cluster(api: HttpApi, namespace: str, name: str) -> Object:
    """The Cluster without its dependents.

    Raises:
        NoClusterError: it does not exist.
    """
    cluster = await find_object(api, CLUSTER, namespace, name)
    if cluster is None:
        hint = await elsewhere(api, CLUSTER.collection, namespace, name) or "`ironbell cluster list -A` lists all."
        raise NoClusterError(f"Cluster {namespace}/{name} does not exist. {hint}", namespace, name)
    return cluster


async def cluster_kubeconfig(api: HttpApi, namespace: str, name: str) -> bytes:
    """The content of the kubeconfig.

    Raises:
        NoClusterError: there is no such Cluster.
        NoKubeconfigYetError: its control plane has not created it.
    """
    secret = secret_name(name, Purpose.KUBECONFIG)
    try:
        content = msgspec.json.decode(await api.get(SECRET.collection, namespace, secret))
        return base64.b64decode(content["data"][VALUE])
    except NotFound:
        await get_cluster(api, namespace, name)
        raise NoKubeconfigYetError(
            f"Secret {namespace}/{secret} does not exist yet; `ironbell cluster describe {name} -n {namespace}` "
            f"shows what the control plane waits for"
        ) from None
    except (KeyError, ValueError):
        raise NoKubeconfigYetError(f"Secret {namespace}/{secret} has no kubeconfig at data.{VALUE}") from None


async def read(
    api: HttpApi, namespace: str, name: str, *, with_parts: bool = False, discovered: Discovered | None = None
) -> Snapshot:
    """The Cluster with its dependents; `with_parts` adds the providers' objects of its Machines.

    A caller that reads it repeatedly passes the `discovered` kinds of the API.

    Raises:
        NoClusterError: it does not exist.
    """
    cluster = await get_cluster(api, namespace, name)
    discovered = discovered or Discovered(api)
    labels = f"{LABEL_CLUSTER_NAME}={name}"
    spec = cluster.get("spec", {})
    infrastructure = await referenced(discovered, namespace, spec.get("infrastructureRef", {}))
    control_plane = await referenced(discovered, namespace, spec.get("controlPlaneRef", {}))
    # Machines after their owners: a Machine that is no longer counted is being deleted in this list, or was deleted
    deployments, sets, pools, machines = [
        tuple(sorted(await discovered.labelled(kind.collection, namespace, labels), key=object_name))
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE_POOL, MACHINE)
    ]
    return Snapshot(
        cluster,
        infrastructure,
        control_plane,
        deployments,
        sets,
        pools,
        machines,
        await _parts(discovered, namespace, labels, machines) if with_parts else {},
    )


async def referenced(discovered: Discovered, namespace: str, reference: Object) -> Object | None:
    """The object that a reference with `apiGroup`, `kind` and `name` names; None if it does not exist."""
    if not reference.get("name"):
        return None
    return await discovered.find(reference.get("apiGroup", ""), reference.get("kind", ""), namespace, reference["name"])


def part_references(machine: Object) -> list[Object]:
    """References of a Machine to its infrastructure and bootstrap objects."""
    spec = machine.get("spec", {})
    references = (spec.get("infrastructureRef", {}), spec.get("bootstrap", {}).get("configRef", {}))
    return [reference for reference in references if reference.get("name")]


def part_key(reference: Object) -> PartKey:
    """The key of a referenced object in `Snapshot.parts`."""
    return reference.get("apiGroup", ""), reference.get("kind", ""), reference["name"]


def object_name(obj: Object) -> str:
    """The name in an object's metadata."""
    return str(obj["metadata"]["name"])


async def _parts(
    discovered: Discovered, namespace: str, labels: str, machines: tuple[Object, ...]
) -> dict[PartKey, Object]:
    """Read each kind with one list, because a cluster may have a thousand Machines."""
    parts: dict[PartKey, Object] = {}
    for group, kind in sorted(
        {part_key(reference)[:2] for machine in machines for reference in part_references(machine)}
    ):
        try:
            where = await discovered.collection(group, kind)
        except NoSuchKindError:
            continue
        for part in await discovered.labelled(where, namespace, labels):
            parts[group, kind, object_name(part)] = {"kind": kind, **part}
    return parts
