"""The kubeconfig of a cluster without a control plane object, whose Machines stand alone.

With a control plane object, its provider makes the kubeconfig and renews it.

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
from ironbell.contract.clusters.kubeconfig import make_kubeconfig
from ironbell.contract.clusters.secrets import Purpose, key_pair_of, kubeconfig_secret, secret_name
from ironbell.contract.pki import KeyAlgorithm
from ironbell.kube.decision import Action, Key, create

KUBECONFIG: Final = "cluster-kubeconfig"
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class KubeconfigArguments:
    """For which cluster, and where its API is."""

    cluster: Key
    server: str
    owner: OwnerReference

    def __hash__(self) -> int:
        return hash((self.cluster, self.server, self.owner.uid))


class KubeconfigMaker:
    """Makes kubeconfigs from the cluster's authority, which it reads at that moment and does not keep."""

    def __init__(self, api: Api, clock: Clock, algorithm: KeyAlgorithm) -> None:
        self._api = api
        self._clock = clock
        self._algorithm = algorithm

    async def __call__(self, arguments: KubeconfigArguments) -> Sequence[Action]:
        """The Secret to be created. That another was first shows when it is.

        Raises:
            ApiError: the authority's Secret cannot be read.
            SecretUnusableError: it holds no key pair.
            PkiError: the pair cannot sign.
        """
        namespace, name = arguments.cluster
        body = await self._api.get(SECRET.collection, namespace, secret_name(name, Purpose.CLUSTER_CA))
        pair = key_pair_of(SECRET.decode(body))
        kubeconfig = await asyncio.to_thread(
            make_kubeconfig, name, arguments.server, pair, self._algorithm, self._clock.now()
        )
        return [create(SECRET, kubeconfig_secret(arguments.cluster, kubeconfig, arguments.owner))]
