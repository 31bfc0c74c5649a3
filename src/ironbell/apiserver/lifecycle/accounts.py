"""The objects of every namespace: the ServiceAccount `default`, and the ConfigMap with the certificate that clients
must trust.

Secrets of type `kubernetes.io/service-account-token` get a token that lasts as long as they do.

Source: kubernetes/kubernetes: pkg/controller/serviceaccount, pkg/controller/certificates/rootcacertpublisher.
"""

from __future__ import annotations

import base64
from typing import Any, Protocol

from ironbell.api.client import AlreadyExists, Conflict, Forbidden, NotFound, Preconditions, Propagation, WriteOptions
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.lifecycle.worklist import Worklist
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.verbs.create import NAMESPACES, create_value
from ironbell.apiserver.verbs.delete import delete
from ironbell.apiserver.verbs.update import Object, update

ACCOUNTS, CONFIG_MAPS, SECRETS = "serviceaccounts", "configmaps", "secrets"
DEFAULT_ACCOUNT, ROOT_CA = "default", "kube-root-ca.crt"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secrets
_TOKEN_TYPE_BYTES = TOKEN_TYPE.encode()
_DESCRIPTION = "kubernetes.io/description"
_OPTIONS = WriteOptions(field_manager="kube-controller-manager")


class IssueToken(Protocol):
    """Issues a token for an account that is valid as long as a Secret exists."""

    def __call__(self, account: Entry, secret: Entry, /) -> str: ...


class Accounts:
    """Maintains the objects of every namespace."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._root_ca = ""
        self._issue_token: IssueToken | None = None
        self.work: Worklist[tuple[str, str, str]] = Worklist("accounts", self._handle, width=8)

    def start(self) -> None:
        """Check all namespaces, and follow changes."""
        self._check()
        self._context.store.listen(self._follow)

    def publish(self, root_ca: bytes, issue_token: IssueToken) -> None:
        """Publish the authority's certificate to namespaces, and issue the tokens of Secrets, from now on."""
        self._root_ca, self._issue_token = root_ca.decode(), issue_token
        self._check()

    def _check(self) -> None:
        store = self._context.store
        for entry in store.objects(NAMESPACES).entries():
            self._want(entry.name)
        for entry in store.objects(SECRETS).entries():
            if _TOKEN_TYPE_BYTES in entry.body:
                self.work.add((SECRETS, *entry.key))

    def _want(self, namespace: str) -> None:
        self.work.add((ACCOUNTS, namespace, DEFAULT_ACCOUNT))
        if self._root_ca:
            self.work.add((CONFIG_MAPS, namespace, ROOT_CA))

    def _follow(self, change: Change) -> None:
        entry = change.entry
        if entry.resource == NAMESPACES:
            if change.previous is None:
                self._want(entry.name)
        elif entry.resource == ACCOUNTS:
            if change.deleted and entry.name == DEFAULT_ACCOUNT:
                self.work.add((ACCOUNTS, *entry.key))
            if change.deleted:
                self._drop_tokens(entry)
        elif entry.resource == CONFIG_MAPS:
            if entry.name == ROOT_CA and self._root_ca:
                self.work.add((CONFIG_MAPS, *entry.key))
        elif entry.resource == SECRETS and not change.deleted and _TOKEN_TYPE_BYTES in entry.body:
            self.work.add((SECRETS, *entry.key))

    def _drop_tokens(self, account: Entry) -> None:
        for entry in self._context.store.objects(SECRETS).entries(account.namespace):
            if _TOKEN_TYPE_BYTES in entry.body:
                self.work.add((SECRETS, *entry.key))

    async def _handle(self, item: tuple[str, str, str]) -> None:
        resource, namespace, name = item
        place = self._context.store.latest(NAMESPACES, ("", namespace))
        if place is None or place.deleting:
            return
        try:
            if resource == SECRETS:
                await self._fill_secret(namespace, name)
            elif resource == ACCOUNTS:
                await self._create(resource, namespace, name, {})
            else:
                await self._publish_root(namespace)
        except (AlreadyExists, Conflict):
            self.work.add(item)
        except (NotFound, Forbidden):
            return  # the namespace is being deleted, or the object was deleted

    async def _create(self, resource: str, namespace: str, name: str, content: Object) -> None:
        if self._context.store.latest(resource, (namespace, name)) is None:
            kind = {ACCOUNTS: "ServiceAccount", CONFIG_MAPS: "ConfigMap"}[resource]
            meta = {"name": name, "namespace": namespace, **content.pop("metadata", {})}
            value = {"apiVersion": "v1", "kind": kind, "metadata": meta, **content}
            await create_value(self._context, self._request(resource, namespace, name), value)

    async def _publish_root(self, namespace: str) -> None:
        data = {"ca.crt": self._root_ca}
        entry = self._context.store.latest(CONFIG_MAPS, (namespace, ROOT_CA))
        if entry is None:
            text = "Contains the certificate of the authority that clients of this API must trust."
            content = {"metadata": {"annotations": {_DESCRIPTION: text}}, "data": data}
            await self._create(CONFIG_MAPS, namespace, ROOT_CA, content)
        elif entry.decode().get("data") != data:

            def change(old: Object, scratch: Object) -> Object:
                return {**scratch, "data": data}

            await update(self._context, self._request(CONFIG_MAPS, namespace, ROOT_CA), change)

    async def _fill_secret(self, namespace: str, name: str) -> None:
        secret = self._context.store.latest(SECRETS, (namespace, name))
        if secret is None or self._issue_token is None:
            return
        value = secret.decode()
        if value.get("type") != TOKEN_TYPE:
            return
        annotations = value["metadata"].get("annotations") or {}
        account = self._context.store.latest(ACCOUNTS, (namespace, annotations.get(ACCOUNT_NAME, "")))
        request = self._request(SECRETS, namespace, name)
        if account is None or annotations.get(ACCOUNT_UID, account.uid) != account.uid:
            only_this = Preconditions(uid=secret.uid)
            await delete(self._context, request, preconditions=only_this, propagation=Propagation.BACKGROUND)
            return
        held = value.get("data") or {}
        if held.get("token") and held.get("namespace") and held.get("ca.crt"):
            return
        token = self._issue_token(account, secret)
        await update(self._context, request, _filled(account, token, root_ca=self._root_ca))

    def _request(self, resource: str, namespace: str, name: str) -> Request:
        info = self._context.resources.stored(resource)
        if info is None:
            raise NotFound(f"{resource} are not served")
        return Request(SYSTEM, info, namespace, name, "", _OPTIONS)


def _filled(account: Entry, token: str, *, root_ca: str) -> Any:
    given = {"token": token, "namespace": account.namespace, "ca.crt": root_ca}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in given.items()}

    def change(old: Object, scratch: Object) -> Object:
        annotations = scratch["metadata"].setdefault("annotations", {})
        annotations[ACCOUNT_UID] = account.uid
        return {**scratch, "data": {**data, **(scratch.get("data") or {})}}

    return change
