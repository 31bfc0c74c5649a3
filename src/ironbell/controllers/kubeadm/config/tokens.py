"""Bootstrap tokens: the Secrets in a workload cluster with which machines join, and their lifetime.

A token is generated once and stored in the KubeadmConfig before its Secret is created. A Secret that was lost can
therefore be created again for a machine that has not joined yet; upstream gives up in this case
(kubernetes-sigs/cluster-api#2770). A token without an expiration is left unchanged.

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
DESCRIPTION: Final = "Lets one machine join; created and renewed by Ironbell's kubeadm bootstrap controller."
_GROUP: Final = "system:bootstrappers:kubeadm:default-node-token"
_FORM: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


LEAST_TTL_S: Final = 60.0


class TokenLifetimeError(IronbellError):
    """A lifetime is too short to be extended three times before it ends."""

    reason, retry = "InvalidOptions", Retry.NEVER


class TokenError(IronbellError):
    """A bootstrap token cannot be used. The message never contains its secret part."""

    reason, retry = "BootstrapTokenUnusable", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class TokenState:
    """The state of a token in the workload cluster."""

    exists: bool
    expires: datetime | None = None
    """None means that the token never expires."""


@dataclass(frozen=True, slots=True)
class TokenOf(Query[TokenState]):
    """Query for the state of a token, by its public part."""

    subject: ClassVar[str] = "the bootstrap token"

    cluster: ClusterKey
    token_id: str


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Lifetime of tokens, and the interval at which they are checked."""

    ttl: timedelta = TOKEN_TTL

    @property
    def check_interval_s(self) -> float:
        """A third of a token's lifetime: one check may fail."""
        return self.ttl.total_seconds() / 3

    def is_short(self, state: TokenState, now: datetime) -> bool:
        """Return whether a token is missing, or has to be extended."""
        return not state.exists or (state.expires is not None and state.expires <= now + self.ttl * 5 / 6)

    def is_past_half(self, state: TokenState, now: datetime) -> bool:
        """Return whether a token that several machines use has to be replaced."""
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
    """Return a new token: six public characters, and sixteen secret ones."""
    return f"{_characters(source, 6)}.{_characters(source, 16)}"


def token_id(token: str) -> str:
    """Return the public part of a token.

    Raises:
        TokenError: the text is not a token.
    """
    return _parts(token)[0]


def secret_name(token_id: str) -> str:
    """Return the name of a token's Secret."""
    return f"bootstrap-token-{token_id}"


def token_secret(token: str, expires: datetime) -> Fields:
    """Return the Secret that makes a workload cluster accept a token.

    Raises:
        TokenError: the text is not a token.
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
    """Return the state that a token's Secret records.

    Raises:
        TokenError: its expiration is not a valid time.
    """
    text = data.get(EXPIRATION, b"")
    try:
        return TokenState(exists=True, expires=parse_rfc3339(text.decode()) if text else None)
    except ValueError:
        raise TokenError(
            "The expiration in the bootstrap token's Secret is not a valid time. Delete the Secret."
        ) from None


def check_secret(token: str, data: Mapping[str, bytes]) -> None:
    """Check that a Secret belongs to a token.

    Raises:
        TokenError: it belongs to another token with the same public part.
    """
    public, secret = _parts(token)
    if data.get(TOKEN_SECRET, b"").decode(errors="replace") != secret:
        raise TokenError(
            f"Secret {NAMESPACE}/{secret_name(public)} of the workload cluster belongs to another token with the same"
            " ID. Remove the token from spec.joinConfiguration.discovery.bootstrapToken to get another one."
        )


def _parts(token: str) -> tuple[str, str]:
    match = _FORM.fullmatch(token)
    if match is None:
        raise TokenError(
            "spec.joinConfiguration.discovery.bootstrapToken.token is not of the form [a-z0-9]{6}.[a-z0-9]{16}"
        )
    return match[1], match[2]


def _characters(source: Randomness, count: int) -> str:
    """Return uniformly distributed characters: bytes that would favour some of them are dropped."""
    usable = 256 - 256 % len(_ALPHABET)
    characters = ""
    while len(characters) < count:
        characters += "".join(
            _ALPHABET[byte % len(_ALPHABET)] for byte in source.token_bytes(2 * count) if byte < usable
        )
    return characters[:count]
