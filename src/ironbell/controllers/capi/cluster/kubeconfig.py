"""The kubeconfig of a cluster without a control plane object, whose Machines have no owner.

If there is a control plane object, its provider creates and renews the kubeconfig.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_phases.go (reconcileKubeconfig).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.client import Api
from ironbell.api.core.secret import SECRET
from ironbell.api.meta import OwnerReference
from ironbell.base.clock import Clock
from ironbell.contract.clusters.kubeconfig import create_kubeconfig
from ironbell.contract.clusters.secrets import Purpose, key_pair_of, kubeconfig_secret, secret_name
from ironbell.contract.pki import KeyAlgorithm
from ironbell.kube.decision import Action, Key, create

KUBECONFIG: Final = "cluster-kubeconfig"
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class KubeconfigArguments:
    """The cluster, and the address of its API."""

    cluster: Key
    server: str
    owner: OwnerReference

    def __hash__(self) -> int:
        return hash((self.cluster, self.server, self.owner.uid))


class KubeconfigCreator:
    """Creates kubeconfigs from the cluster's authority, which it reads each time and does not keep."""

    def __init__(self, api: Api, clock: Clock, algorithm: KeyAlgorithm) -> None:
        self._api = api
        self._clock = clock
        self._algorithm = algorithm

    async def __call__(self, arguments: KubeconfigArguments) -> Sequence[Action]:
        """The Secret to create. If it exists already, its creation fails later.

        Raises:
            ApiError: the authority's Secret cannot be read.
            SecretUnusableError: the Secret has no key pair.
            PkiError: the key pair cannot sign.
        """
        namespace, name = arguments.cluster
        body = await self._api.get(SECRET.collection, namespace, secret_name(name, Purpose.CLUSTER_CA))
        pair = key_pair_of(SECRET.decode(body))
        kubeconfig = await asyncio.to_thread(
            create_kubeconfig, name, arguments.server, pair, self._algorithm, self._clock.now()
        )
        return [create(SECRET, kubeconfig_secret(arguments.cluster, kubeconfig, arguments.owner))]
