"""Links over HTTP, from kubeconfigs that stand in Secrets.

Such a kubeconfig comes from whoever may write the Secret, not from who runs the controllers: it must hold all that it
needs. One that names files or programs on the controllers' machine is refused.

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
    """The cluster's API as this kubeconfig says. A `Connect`.

    Raises:
        ConnectionConfigError: it cannot be used, or names files or programs.
    """
    where = f"Secret {'/'.join(cluster)}-kubeconfig"
    chosen = choose_from(kubeconfig, where=where)
    _refuse_foreign(chosen, where)
    return HttpLink(HttpApi(from_content(chosen)))


def _refuse_foreign(chosen: Chosen, where: str) -> None:
    for section in (chosen.user, chosen.cluster):
        for name in _PROGRAMS:
            if section.fields.get(name):
                raise ConnectionConfigError(f"{where}: {name} is not allowed; give a client certificate or a token")
        for name in _FILES:
            if section.text(name):
                raise ConnectionConfigError(f"{where}: {name} names a file; put its content into the kubeconfig")
