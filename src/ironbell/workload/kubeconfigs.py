"""Links over HTTP, from kubeconfigs in Secrets.

Such a kubeconfig is written by a user who may write the Secret, not by the operator of the controllers. It must be
self-contained: one that names files or programs on the controllers' machine is rejected.

Source: kubernetes-sigs/cluster-api: controllers/clustercache/cluster_accessor_client.go.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from ironbell.api.client import Api
from ironbell.kube.decision import Key
from ironbell.kube.transport.connection import from_content
from ironbell.kube.transport.forward import forwarded
from ironbell.kube.transport.http import HttpApi
from ironbell.kube.transport.kubeconfig import Chosen, choose_from
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.link import Tunnel

_PROGRAMS = ("exec", "auth-provider")
_FILES = ("tokenFile", "client-certificate", "client-key", "certificate-authority")


class HttpLink:
    """A `Link` over HTTP."""

    def __init__(self, api: HttpApi) -> None:
        self._api = api

    @property
    def api(self) -> Api:
        return self._api

    async def probe(self) -> None:
        await self._api.raw("GET", "/", accept="*/*")

    def forward(self, namespace: str, pod: str, port: int) -> AbstractAsyncContextManager[Tunnel]:
        return forwarded(self._api, namespace, pod, port)

    async def close(self) -> None:
        await self._api.close()


def http_link(cluster: Key, kubeconfig: bytes) -> HttpLink:
    """Open a link to the API that a kubeconfig describes. This is a `Connect`.

    Raises:
        ConnectionConfigError: the kubeconfig is not valid, or names files or programs.
    """
    where = f"Secret {'/'.join(cluster)}-kubeconfig"
    chosen = choose_from(kubeconfig, where=where)
    _reject_external(chosen, where)
    return HttpLink(HttpApi(from_content(chosen)))


def _reject_external(chosen: Chosen, where: str) -> None:
    for section in (chosen.user, chosen.cluster):
        for name in _PROGRAMS:
            if section.fields.get(name):
                raise ConnectionConfigError(f"{where}: {name} is not allowed; give a client certificate or a token")
        for name in _FILES:
            if section.text(name):
                raise ConnectionConfigError(f"{where}: {name} names a file; put its content into the kubeconfig")
