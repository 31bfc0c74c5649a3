"""Performers of the controller's effects: keys, etcd, and objects in `kube-system`.

Keys are generated outside the event loop, and appear only in Secrets. Effects in a workload cluster first check whether
they are still needed, so that they can be repeated.

Failure modes: `NotConnected` from `workload`, errors of the cluster's API or etcd, `PkiError` for an authority that
cannot sign; the effect is retried with backoff.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{workload_cluster_etcd,workload_cluster_rbac,
workload_cluster,workload_cluster_coredns}.go, util/secret/certificates.go, util/kubeconfig/kubeconfig.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ironbell.api.client import AlreadyExists, Api, NotFound, PatchType
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock
from ironbell.base.threads import SpareProcessors
from ironbell.contract import pki
from ironbell.contract.clusters.kubeconfig import create_kubeconfig, server_of
from ironbell.contract.clusters.secrets import (
    VALUE,
    Purpose,
    encoded,
    key_pair_of,
    key_pair_secret,
    kubeconfig_secret,
    secret_name,
    value_of,
)
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.controlplane.machines.hook import RELEASE
from ironbell.controllers.kubeadm.controlplane.workload.certificates import (
    CREATE_CERTIFICATES,
    CREATE_KUBECONFIG,
    ROTATE_KUBECONFIG,
    CreateCertificates,
    CreateKubeconfig,
)
from ironbell.controllers.kubeadm.controlplane.workload.effects import (
    MOVE_LEADER,
    PREPARE_UPGRADE,
    REMOVE_MEMBER,
    SET_COREDNS,
    SET_KUBE_PROXY,
    CoreDnsArguments,
    KubeProxyArguments,
    LeaderArguments,
    MemberArguments,
    UpgradeArguments,
)
from ironbell.controllers.kubeadm.controlplane.workload.kubeadmconfigmap import upgraded, with_dns
from ironbell.controllers.kubeadm.controlplane.workload.resolvers import (
    CLUSTER_CONFIGURATION,
    CONFIG_MAPS,
    COREDNS,
    COREFILE,
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_PROXY,
    KUBE_SYSTEM,
    KUBEADM_CONFIG,
    EtcdAccess,
    image_of,
    read_secret,
)
from ironbell.kube.decision import Action, Fields, MergePatch, create
from ironbell.kube.reconciler import Performers
from ironbell.workload.access import Workloads
from ironbell.workload.etcd import EtcdError

_ROLE_BINDINGS: Final = Collection("rbac.authorization.k8s.io", "v1", "clusterrolebindings", False)
_KUBEADM_ROLES_UNTIL: Final = (1, 38)
_COREFILE_BACKUP: Final = "Corefile-backup"
_CONFIG_VOLUME: Final = "config-volume"


class Operator:
    """Performs the effects of the control plane's controller."""

    def __init__(self, api: Api, workloads: Workloads, etcd: EtcdAccess, clock: Clock) -> None:
        self._api = api
        self._workloads = workloads
        self._etcd = etcd
        self._clock = clock
        self._spare = SpareProcessors()

    def performers(self) -> Performers:
        """Return the performers by the name of their effect."""
        return {
            CREATE_CERTIFICATES: self.create_certificates,
            CREATE_KUBECONFIG: self.create_kubeconfig,
            ROTATE_KUBECONFIG: self.rotate_kubeconfig,
            MOVE_LEADER: self.move_leader,
            REMOVE_MEMBER: self.remove_member,
            PREPARE_UPGRADE: self.prepare_upgrade,
            SET_KUBE_PROXY: self.set_kube_proxy,
            SET_COREDNS: self.set_coredns,
        }

    async def create_certificates(self, arguments: CreateCertificates) -> Sequence[Action]:
        """Create the missing authorities."""
        pairs = await asyncio.gather(*(self._pair(arguments, purpose) for purpose in arguments.purposes))
        return [
            create(SECRET, key_pair_secret(arguments.cluster, purpose, pair, arguments.owner))
            for purpose, pair in zip(arguments.purposes, pairs, strict=True)
        ]

    async def _pair(self, arguments: CreateCertificates, purpose: Purpose) -> KeyPair:
        if purpose is Purpose.SERVICE_ACCOUNT:
            return await self._spare.run(pki.create_service_account_keys, arguments.algorithm)
        return await self._spare.run(pki.create_authority, arguments.algorithm, self._clock.now(), days=arguments.days)

    async def create_kubeconfig(self, arguments: CreateKubeconfig) -> Sequence[Action]:
        """Create the administrator's kubeconfig."""
        content = await self._kubeconfig(arguments, arguments.server)
        return [create(SECRET, kubeconfig_secret(arguments.cluster, content, arguments.owner))]

    async def rotate_kubeconfig(self, arguments: CreateKubeconfig) -> Sequence[Action]:
        """Renew the key and certificate of the kubeconfig; the server's address is kept."""
        cluster = arguments.cluster
        secret = await read_secret(self._api, cluster, Purpose.KUBECONFIG)
        current = None if secret is None else value_of(secret, VALUE)
        if secret is None or current is None:
            return []
        content = await self._kubeconfig(arguments, server_of(current, cluster[1]))
        name, version = secret_name(cluster[1], Purpose.KUBECONFIG), secret.metadata.resource_version
        return [MergePatch(SECRET, cluster[0], name, {"data": encoded({VALUE: content})}, resource_version=version)]

    async def _kubeconfig(self, arguments: CreateKubeconfig, server: str) -> bytes:
        cluster = arguments.cluster
        secret = await read_secret(self._api, cluster, Purpose.CLUSTER_CA)
        if secret is None:
            raise NotFound(f"Secret {cluster[0]}/{secret_name(cluster[1], Purpose.CLUSTER_CA)} does not exist")
        authority, now = key_pair_of(secret), self._clock.now()
        return await self._spare.run(create_kubeconfig, cluster[1], server, authority, arguments.algorithm, now)

    async def move_leader(self, arguments: LeaderArguments) -> Sequence[Action]:
        """Move the leadership to the first candidate that accepts it. Only the leader itself accepts the request."""
        async with self._etcd.first_of(arguments.cluster, [arguments.node]) as (etcd, status):
            members = {member.name: member for member in await etcd.members()}
            current = members.get(arguments.node)
            if current is None or current.id != status.leader_id:
                return []
            problem = EtcdError(f"none of {', '.join(arguments.candidates)} is a member that can lead")
            for candidate in arguments.candidates:
                if candidate not in members:
                    continue
                try:
                    await etcd.move_leader(members[candidate].id)
                except EtcdError as error:
                    problem = error
                    continue
                return []
            raise problem

    async def remove_member(self, arguments: MemberArguments) -> Sequence[Action]:
        """Remove a member if it still exists, and then release its Machine's host.

        Raises:
            EtcdError: it is the last member.
        """
        async with self._etcd.first_of(arguments.cluster, arguments.nodes) as (etcd, _status):
            members = await etcd.members()
            if any(member.id == arguments.member_id for member in members):
                if len(members) == 1:
                    raise EtcdError("the last member of an etcd cluster cannot be removed")
                await etcd.remove_member(arguments.member_id)
        return [] if arguments.released is None else [MergePatch(MACHINE, *arguments.released, RELEASE)]

    async def prepare_upgrade(self, arguments: UpgradeArguments) -> Sequence[Action]:
        """Create roles, which a node of the new version needs from its start, and update kubeadm's configuration."""
        api = await self._workloads.api(arguments.cluster)
        if arguments.version[:2] < _KUBEADM_ROLES_UNTIL:
            for binding in _kubeadm_bindings():
                await _ensure(api, _ROLE_BINDINGS, binding)
        await _update_kubeadm_config(api, lambda text: upgraded(text, arguments.desired, arguments.version))
        return []

    async def set_kube_proxy(self, arguments: KubeProxyArguments) -> Sequence[Action]:
        """Set the image of kube-proxy."""
        api = await self._workloads.api(arguments.cluster)
        await _set_image(api, DAEMON_SETS, KUBE_PROXY, arguments.image)
        return []

    async def set_coredns(self, arguments: CoreDnsArguments) -> Sequence[Action]:
        """Update kubeadm's configuration, keep a copy of the Corefile, and then set the image."""
        api = await self._workloads.api(arguments.cluster)
        dns: Fields = msgspec.json.decode(arguments.configuration).get("dns") or {}
        await _update_kubeadm_config(api, lambda text: with_dns(text, dns, arguments.version))
        config = msgspec.json.decode(await api.get(CONFIG_MAPS, KUBE_SYSTEM, COREDNS))
        corefile = (config.get("data") or {}).get(COREFILE, "")
        if (config.get("data") or {}).get(_COREFILE_BACKUP) != corefile:
            await _merge(api, CONFIG_MAPS, COREDNS, {"data": {_COREFILE_BACKUP: corefile}})
        await _set_image(api, DEPLOYMENTS, COREDNS, arguments.change.to_image, items=True)
        return []


def _kubeadm_bindings() -> list[Fields]:
    """Return the bindings that newer versions of kubeadm create, and that `kubeadm upgrade` would add."""
    admins = "kubeadm:cluster-admins"
    return [
        _binding(admins, "cluster-admin", "Group", admins),
        _binding(
            "kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client"
        ),
    ]


def _binding(name: str, role: str, kind: str, subject: str) -> Fields:
    group = _ROLE_BINDINGS.group
    return {
        "apiVersion": _ROLE_BINDINGS.api_version,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": kind, "name": subject}],
    }


async def _ensure(api: Api, where: Collection, body: Fields) -> None:
    try:
        await api.get(where, "", body["metadata"]["name"])
    except NotFound:
        try:
            await api.create(where, "", msgspec.json.encode(body))
        except AlreadyExists:
            return


async def _update_kubeadm_config(api: Api, change: Callable[[str], str]) -> None:
    current = msgspec.json.decode(await api.get(CONFIG_MAPS, KUBE_SYSTEM, KUBEADM_CONFIG))
    text = (current.get("data") or {}).get(CLUSTER_CONFIGURATION, "")
    changed = await asyncio.to_thread(change, text)
    if changed == text:
        return
    # a concurrent change is a conflict, and the effect is retried
    version = current["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {CLUSTER_CONFIGURATION: changed}}
    await _merge(api, CONFIG_MAPS, KUBEADM_CONFIG, body)


async def _set_image(api: Api, where: Collection, name: str, image: str, *, items: bool = False) -> None:
    """Set the image of the container that has its workload's name; `items` resets its volume to the Corefile."""
    current = msgspec.json.decode(await api.get(where, KUBE_SYSTEM, name))
    if image_of(current, name) == image:
        return
    pod: Fields = current["spec"]["template"]["spec"]
    containers = [{**c, "image": image} if c.get("name") == name else c for c in pod["containers"]]
    changed: Fields = {"containers": containers}
    if items:
        changed["volumes"] = [_with_corefile(volume) for volume in pod.get("volumes") or []]
    version = current["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "spec": {"template": {"spec": changed}}}
    await _merge(api, where, name, body)


def _with_corefile(volume: Fields) -> Fields:
    """Return the volume with CoreDNS's configuration; an earlier upgrade may have mounted its copy of the Corefile."""
    config = volume.get("configMap")
    if volume.get("name") != _CONFIG_VOLUME or not config or config.get("name") != COREDNS:
        return volume
    items = [
        {**item, "key": COREFILE} if item.get("key") == _COREFILE_BACKUP else item for item in config.get("items") or []
    ]
    return {**volume, "configMap": {**config, "items": items}} if items else volume


async def _merge(api: Api, where: Collection, name: str, body: Fields) -> None:
    await api.patch(where, KUBE_SYSTEM, name, msgspec.json.encode(body), patch_type=PatchType.MERGE)
