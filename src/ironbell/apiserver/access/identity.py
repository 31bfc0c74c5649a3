"""Identities of the embedded API's clients.

An identity is given by the HTTP face (from a certificate or token) or by the process's wiring (for direct calls);
everything behind it, authorisation and admission included, treats both the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

MASTERS = "system:masters"
"""The group whose members may do everything (kubernetes/apiserver: pkg/authentication/user/user.go)."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

Extra = tuple[tuple[str, tuple[str, ...]], ...]
"""Further facts about a user, by key, in the order of the keys."""


class Identity(msgspec.Struct, frozen=True):
    """A user name and the groups it belongs to."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Extra = ()


def user_info(identity: Identity) -> dict[str, Any]:
    """An identity as objects write it (`UserInfo`)."""
    info: dict[str, Any] = {"username": identity.user}
    if identity.uid:
        info["uid"] = identity.uid
    if identity.groups:
        info["groups"] = identity.groups
    if identity.extra:
        info["extra"] = dict(identity.extra)
    return info


ADMIN = Identity("kubernetes-admin", (MASTERS, AUTHENTICATED))
"""For embedding without further roles, and for tests."""

SYSTEM = Identity("system:apiserver", (MASTERS, AUTHENTICATED))
"""The server itself: garbage collection, namespace life."""
