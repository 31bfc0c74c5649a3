"""`POST .../serviceaccounts/NAME/token`: a token for a ServiceAccount.

Source: kubernetes/kubernetes: pkg/registry/core/serviceaccount/storage/token.go,
pkg/apis/authentication/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Conflict, Invalid, NotFound
from ironbell.apiserver.fielderrors import FieldError, invalid
from ironbell.apiserver.identities.accounts import AccountTokens, Reference
from ironbell.apiserver.request import Request
from ironbell.apiserver.status import not_found
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.store.store import Store
from ironbell.base.clock import Clock, rfc3339

API_VERSION, KIND = "authentication.k8s.io/v1", "TokenRequest"
DEFAULT_SECONDS = 3600
_SHORTEST, _LONGEST = 600, 1 << 32
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class _BoundObject(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    audiences: tuple[str, ...] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _BoundObject | None = None


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _TokenRequest(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()
    metadata: _Meta | None = None
    kind: str = KIND


class TokenRequests:
    """Serves requests for tokens."""

    def __init__(self, tokens: AccountTokens, store: Store, clock: Clock) -> None:
        self._tokens, self._store, self._clock = tokens, store, clock

    async def __call__(self, request: Request, body: bytes) -> bytes:
        """The request with the token as its status.

        Raises:
            NotFound: the account, or the object to bind to, does not exist.
            BadRequest: the body is not a token request, or names an object that tokens cannot be bound to.
            Conflict: the account or the object has another uid than the request.
            Invalid: the request is not valid.
        """
        document = _read(body)
        meta, spec = document.metadata or _Meta(), document.spec
        account = self._account(request, meta)
        seconds = DEFAULT_SECONDS if spec.expiration_seconds is None else spec.expiration_seconds
        _raise_invalid("", _duration_faults(seconds))
        bound, node = self._bound(request, spec.bound_object_ref)
        audiences = spec.audiences or self._tokens.audiences
        token = self._tokens.issue(account, audiences=audiences, seconds=seconds, bound=bound, node=node)
        expires = self._clock.now() + timedelta(seconds=seconds)
        answered: dict[str, Any] = {
            "kind": KIND,
            "apiVersion": API_VERSION,
            "metadata": {
                "name": account.name,
                "namespace": account.namespace,
                "uid": account.uid,
                "creationTimestamp": rfc3339(self._clock.now()),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": _reference_object(spec.bound_object_ref),
            },
            "status": {"token": token, "expirationTimestamp": rfc3339(expires)},
        }
        return msgspec.json.encode(answered)

    def _account(self, request: Request, meta: _Meta) -> Entry:
        name, namespace = request.name, request.namespace
        if meta.name and meta.name != name:
            detail = "must match the service account name if specified"
            _raise_invalid(name, [invalid("metadata.name", meta.name, detail)])
        if meta.namespace and meta.namespace != namespace:
            detail = "must match the service account namespace if specified"
            _raise_invalid(name, [invalid("metadata.namespace", meta.namespace, detail)])
        account = self._store.get(request.info.store_key, request.key)
        if account is None:
            raise not_found(request.info, name)
        if meta.uid and meta.uid != account.uid:
            raise _conflict(
                "TokenRequest.authentication.k8s.io",
                name,
                f"the UID in the token request ({meta.uid}) does not match the UID of the service account "
                f"({account.uid})",
            )
        return account

    def _bound(self, request: Request, reference: _BoundObject | None) -> tuple[Reference | None, Reference | None]:
        """The object to bind a token to, and the node on which it runs if it is a pod."""
        if reference is None:
            return None, None
        plural = _BINDABLE.get(reference.kind) if reference.api_version in ("", "v1") else None
        if plural is None:
            group, _, version = reference.api_version.rpartition("/")
            raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={reference.kind}")
        namespace = "" if plural == "nodes" else request.namespace
        entry = self._store.get(plural, (namespace, reference.name))
        if entry is None:
            details = {"name": reference.name, "kind": plural}
            raise NotFound(f'{plural} "{reference.name}" not found', details=details)
        node = self._node_of(request, entry) if plural == "pods" else None
        if reference.uid and reference.uid != entry.uid:
            raise _conflict(
                reference.kind,
                reference.name,
                f"the UID in the bound object reference ({reference.uid}) does not match the UID in record. The object "
                "might have been deleted and then recreated",
            )
        return Reference(plural, entry.name, entry.uid), node

    def _node_of(self, request: Request, pod: Entry) -> Reference | None:
        spec = pod.decode().get("spec") or {}
        if spec.get("serviceAccountName", "") != request.name:
            raise BadRequest(
                f'cannot bind token for serviceaccount "{request.name}" to pod running with different serviceaccount '
                "name."
            )
        name = spec.get("nodeName", "")
        node = self._store.get("nodes", ("", name)) if name else None
        return Reference("nodes", name, node.uid if node is not None else "") if name else None


def _read(body: bytes) -> _TokenRequest:
    try:
        return msgspec.json.decode(body, type=_TokenRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not a valid {KIND}: {error}") from error


def _reference_object(bound: _BoundObject | None) -> dict[str, str] | None:
    if bound is None:
        return None
    reference = {"kind": bound.kind, "apiVersion": bound.api_version, "name": bound.name, "uid": bound.uid}
    return {name: value for name, value in reference.items() if value}


def _duration_faults(seconds: int) -> list[FieldError]:
    if seconds < _SHORTEST:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _raise_invalid(name: str, faults: Sequence[FieldError]) -> None:
    if faults:
        listed = ", ".join(map(str, faults))
        details = {"name": name, "group": "authentication.k8s.io", "kind": KIND}
        raise Invalid(
            f'{KIND}.authentication.k8s.io "{name}" is invalid: {listed}',
            details={
                **{key: value for key, value in details.items() if value},
                "causes": [fault.cause for fault in faults],
            },
        )


def _conflict(kind: str, name: str, detail: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {kind} "{name}": {detail}', details={"name": name, "kind": kind})
