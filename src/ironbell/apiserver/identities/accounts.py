"""ServiceAccount tokens: signed claims that are valid for a time, and only while their account and the object that they
are bound to exist.

Source: kubernetes/kubernetes: pkg/serviceaccount/claims.go, jwt.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.identity import AUTHENTICATED, Extra, Identity
from ironbell.apiserver.identities.jwt import SigningKey
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.store.store import Store
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness, uuid4

ISSUER = "https://kubernetes.default.svc.cluster.local"
USER_PREFIX = "system:serviceaccount:"
LEEWAY_S = 60
_EXTRA = "authentication.kubernetes.io"
_CHECKED_CACHE = 4096


class Reference(msgspec.Struct, frozen=True):
    """An object that a token is bound to."""

    plural: str
    name: str
    uid: str


class Holder(msgspec.Struct, frozen=True):
    """The user that a token names, and its audiences."""

    identity: Identity
    audiences: tuple[str, ...]


class _Ref(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class _Kubernetes(msgspec.Struct, frozen=True):
    namespace: str
    serviceaccount: _Ref
    pod: _Ref | None = None
    node: _Ref | None = None
    secret: _Ref | None = None


class _Claims(msgspec.Struct, frozen=True):
    iss: str
    exp: float
    nbf: float
    aud: list[str]
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")
    jti: str = ""


def user_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{USER_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of all ServiceAccounts of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_user_name(user: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount of a user name; None if it is not a ServiceAccount's."""
    if not user.startswith(USER_PREFIX):
        return None
    namespace, colon, name = user.removeprefix(USER_PREFIX).partition(":")
    return (namespace, name) if colon and namespace and name and ":" not in name else None


class AccountTokens:
    """Issues and verifies the tokens of ServiceAccounts."""

    def __init__(
        self, key: SigningKey, store: Store, *, clock: Clock, randomness: Randomness, issuer: str = ISSUER
    ) -> None:
        self.key, self.issuer = key, issuer
        self.audiences = (issuer,)
        """Audiences of a token that is requested without any."""
        self._store, self._clock, self._randomness = store, clock, randomness
        self._checked: dict[str, _Claims] = {}

    def issue(
        self,
        account: Entry,
        *,
        audiences: Sequence[str],
        seconds: int,
        bound: Reference | None = None,
        node: Reference | None = None,
    ) -> str:
        """Issue a token for an account, bound to an object if one is given; `node` is where a bound pod runs."""
        now = int(self._clock.now().timestamp())
        private: dict[str, Any] = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        for reference in (bound, node):
            if reference is not None:
                private[reference.plural[:-1]] = {"name": reference.name, "uid": reference.uid}
        return self.key.sign(
            {
                "aud": list(audiences),
                "exp": now + seconds,
                "iat": now,
                "iss": self.issuer,
                "jti": uuid4(self._randomness),
                "kubernetes.io": private,
                "nbf": now,
                "sub": user_name(account.namespace, account.name),
            }
        )

    def identify(self, token: str, audiences: Iterable[str] = ()) -> Holder | None:
        """Return the holder of a token of ours for one of `audiences`, or for this server if there are none; None for
        other tokens.

        Raises:
            Unauthorized: the token is ours, and expired, revoked or for other audiences.
        """
        claims = self._claims(token)
        if claims is None or claims.iss != self.issuer:
            return None
        accepted = tuple(audiences) or self.audiences
        meant = tuple(audience for audience in accepted if audience in claims.aud)
        if not meant:
            raise Unauthorized(f"token audiences {_go(claims.aud)} is invalid for the target audiences {_go(accepted)}")
        now = self._clock.now().timestamp()
        if now > claims.exp + LEEWAY_S:
            raise Unauthorized("service account token has expired")
        if now < claims.nbf - LEEWAY_S:
            raise Unauthorized("service account token is not valid yet")
        self._check_objects(claims.kubernetes)
        return Holder(_identity(claims), meant)

    def _claims(self, token: str) -> _Claims | None:
        """The claims of a token; kept, because clients send the same token with every request."""
        claims = self._checked.get(token)
        if claims is not None:
            return claims
        stated = self.key.verify(token)
        if stated is None:
            return None
        try:
            claims = msgspec.convert(stated, _Claims)
        except msgspec.ValidationError:
            return None
        if len(self._checked) >= _CHECKED_CACHE:
            self._checked.clear()
        self._checked[token] = claims
        return claims

    def _check_objects(self, private: _Kubernetes) -> None:
        account = private.serviceaccount
        entry = self._store.get("serviceaccounts", (private.namespace, account.name))
        if entry is None:
            raise Unauthorized(f'serviceaccounts "{account.name}" not found')
        if entry.uid != account.uid:
            raise Unauthorized(f"service account UID ({entry.uid}) does not match claim ({account.uid})")
        if self._was_deleted(entry):
            raise Unauthorized(f"service account {private.namespace}/{account.name} has been deleted")
        if private.secret is not None:
            self._check_bound("secrets", private.namespace, private.secret)
        if private.pod is not None:
            self._check_bound("pods", private.namespace, private.pod)
        elif private.node is not None:
            self._check_bound("nodes", "", private.node)

    def _check_bound(self, resource: str, namespace: str, reference: _Ref) -> None:
        entry = self._store.get(resource, (namespace, reference.name))
        if entry is None or self._was_deleted(entry):
            raise Unauthorized("service account token has been invalidated")
        if entry.uid != reference.uid:
            kind = resource[:-1]
            raise Unauthorized(
                f"{kind} UID ({entry.uid}) does not match service account {kind} ref claim ({reference.uid})"
            )

    def _was_deleted(self, entry: Entry) -> bool:
        """Return whether an object has been marked for deletion for longer than clocks may differ."""
        if not entry.deleting:
            return False
        marked = datetime.fromisoformat(entry.decode()["metadata"]["deletionTimestamp"])
        return (self._clock.now() - marked).total_seconds() > LEEWAY_S


def _identity(claims: _Claims) -> Identity:
    private = claims.kubernetes
    extra: dict[str, tuple[str, ...]] = {}
    if claims.jti:
        extra[f"{_EXTRA}/credential-id"] = (f"JTI={claims.jti}",)
    for kind, reference in (("node", private.node), ("pod", private.pod)):
        if reference is not None:
            extra[f"{_EXTRA}/{kind}-name"] = (reference.name,)
            if reference.uid:
                extra[f"{_EXTRA}/{kind}-uid"] = (reference.uid,)
    sorted_extra: Extra = tuple(sorted(extra.items()))
    groups = (*account_groups(private.namespace), AUTHENTICATED)
    user = user_name(private.namespace, private.serviceaccount.name)
    return Identity(user, groups, private.serviceaccount.uid, sorted_extra)


def _go(words: Iterable[str]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
