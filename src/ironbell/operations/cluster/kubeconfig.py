"""The kubeconfig of a cluster, from its Secret."""

from __future__ import annotations

import base64

import msgspec

from ironbell.api.client import NotFound
from ironbell.api.core import SECRET
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.cluster_secrets import VALUE, Purpose, secret_name
from ironbell.kube.http import HttpApi
from ironbell.operations.cluster.snapshot import get_cluster


class NoKubeconfigYetError(IronbellError):
    """The cluster has none."""

    reason = "NoKubeconfigYet"
    retry = Retry.BACKOFF


async def cluster_kubeconfig(api: HttpApi, namespace: str, name: str) -> bytes:
    """The kubeconfig's text.

    Raises:
        NoClusterError: there is no such Cluster.
        NoKubeconfigYetError: its control plane has not made one.
    """
    secret = secret_name(name, Purpose.KUBECONFIG)
    try:
        found = msgspec.json.decode(await api.get(SECRET.collection, namespace, secret))
        return base64.b64decode(found["data"][VALUE])
    except NotFound:
        await get_cluster(api, namespace, name)
        raise NoKubeconfigYetError(
            f"Secret {namespace}/{secret} is not there yet; `ironbell cluster describe {name} -n {namespace}` "
            f"shows what the control plane waits for"
        ) from None
    except (KeyError, ValueError):
        raise NoKubeconfigYetError(f"Secret {namespace}/{secret} has no kubeconfig at data.{VALUE}") from None
