"""Bootstrap tokens: the Secrets in a workload cluster by which machines join, and how long they live.

A token is made once and stored in the KubeadmConfig before its Secret is made, so that a Secret that was lost is made
again for a machine that is still on its way: upstream gives up there (kubernetes-sigs/cluster-api#2770). A token
without an expiration stays as its maker wanted it.

Source: kubernetes-sigs/cluster-api: bootstrap/kubeadm/reconcilers/kubeadmconfig/token.go; kubernetes/cluster-bootstrap:
token/api/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.randomness import Randomness
from ironbell.contract.clusters.secrets import encoded
from ironbell.kube.decision import Fields, Query
from ironbell.workload.clusterkey import ClusterKey

TOKEN_TTL: Final = timedelta(minutes=15)
NAMESPACE: Final = "kube-system"
SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type, no secret
EXPIRATION: Final = "expiration"
TOKEN_ID: Final = "token-id"  # noqa: S105
TOKEN_SECRET: Final = "token-secret"  # noqa: S105
DESCRIPTION: Final = "Lets one machine join; made and kept alive by Ironbell's kubeadm bootstrap controller."
_GROUP: Final = "system:bootstrappers:kubeadm:default-node-token"
_FORM: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


LEAST_TTL_S: Final = 60.0


class TokenLifetimeError(IronbellError):
    """A lifetime is too short to be extended three times before it is over."""

    reason, retry = "InvalidOptions", Retry.NEVER


class TokenError(IronbellError):
    """A bootstrap token cannot be used. The message never holds its secret part."""

    reason, retry = "BootstrapTokenUnusable", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class TokenState:
    """What the workload cluster knows of a token."""

    exists: bool
    expires: datetime | None = None
    """None: never."""


@dataclass(frozen=True, slots=True)
class TokenOf(Query[TokenState]):
    """How a token stands, by its public part."""

    subject: ClassVar[str] = "the bootstrap token"

    cluster: ClusterKey
    token_id: str


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long tokens live, and when they are looked after."""

    ttl: timedelta = TOKEN_TTL

    @property
    def look_every_s(self) -> float:
        """Three times in a token's life: one look may fail."""
        return self.ttl.total_seconds() / 3

    def is_short(self, state: TokenState, now: datetime) -> bool:
        """Whether a token is gone, or is to be given more time."""
        return not state.exists or (state.expires is not None and state.expires <= now + self.ttl * 5 / 6)

    def is_past_half(self, state: TokenState, now: datetime) -> bool:
        """Whether a token that is used again and again is to be replaced."""
        return not state.exists or (state.expires is not None and state.expires < now + self.ttl / 2)


def read_settings(options: Mapping[str, Any]) -> tuple[object, ...]:
    """Read the system's option of `ironbell run`.

    Raises:
        TokenLifetimeError: the lifetime is too short.
    """
    seconds: float = options["token_ttl_s"]
    if seconds < LEAST_TTL_S:
        raise TokenLifetimeError(f"--bootstrap-token-ttl must be at least {LEAST_TTL_S:g} seconds")
    return (Lifetime(timedelta(seconds=seconds)),)


def new_token(source: Randomness) -> str:
    """A new token: six characters that are known, and sixteen that are secret."""
    return f"{_characters(source, 6)}.{_characters(source, 16)}"


def token_id(token: str) -> str:
    """The public part.

    Raises:
        TokenError: it is no token.
    """
    return _parts(token)[0]


def secret_name(token_id: str) -> str:
    """The name of a token's Secret."""
    return f"bootstrap-token-{token_id}"


def token_secret(token: str, expires: datetime) -> Fields:
    """The Secret that makes a workload cluster accept a token.

    Raises:
        TokenError: it is no token.
    """
    public, secret = _parts(token)
    data = {
        TOKEN_ID: public,
        TOKEN_SECRET: secret,
        EXPIRATION: rfc3339(expires),
        "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": _GROUP,
        "description": DESCRIPTION,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": NAMESPACE, "name": secret_name(public)},
        "type": SECRET_TYPE,
        "data": encoded({key: value.encode() for key, value in data.items()}),
    }


def state_of(data: Mapping[str, bytes]) -> TokenState:
    """What a token's Secret says.

    Raises:
        TokenError: its expiration is no time.
    """
    text = data.get(EXPIRATION, b"")
    try:
        return TokenState(exists=True, expires=parse_rfc3339(text.decode()) if text else None)
    except ValueError:
        raise TokenError("the bootstrap token's Secret has an expiration that is no time; delete the Secret") from None


def check_same(token: str, data: Mapping[str, bytes]) -> None:
    """Hold a token's Secret to being that of this token.

    Raises:
        TokenError: it is of another token with the same public part.
    """
    public, secret = _parts(token)
    if data.get(TOKEN_SECRET, b"").decode(errors="replace") != secret:
        raise TokenError(
            f"Secret {NAMESPACE}/{secret_name(public)} of the workload cluster belongs to another token with the same"
            " ID; remove the token from spec.joinConfiguration.discovery.bootstrapToken to get another"
        )


def _parts(token: str) -> tuple[str, str]:
    match = _FORM.fullmatch(token)
    if match is None:
        raise TokenError(
            "spec.joinConfiguration.discovery.bootstrapToken.token is not of the form [a-z0-9]{6}.[a-z0-9]{16}"
        )
    return match[1], match[2]


def _characters(source: Randomness, count: int) -> str:
    """Uniform: bytes that would favour some characters are not used."""
    usable = 256 - 256 % len(_ALPHABET)
    found = ""
    while len(found) < count:
        found += "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in source.token_bytes(2 * count) if byte < usable)
    return found[:count]
