"""Impersonation: requests of one identity in the name of another, within its permissions.

Two kinds of permission exist: the verb `impersonate` on an identity, for everything that it may do; or, narrower,
`impersonate:MODE` on the identity, together with `impersonate-on:MODE:VERB` on the request's resource.

Source: kubernetes/apiserver: pkg/endpoints/filters/impersonation (mode.go, constrained_impersonation.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import msgspec

from ironbell.api.client import BadRequest, Forbidden
from ironbell.apiserver.access.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED, Identity
from ironbell.apiserver.access.roles import Attributes, Authorizer, forbidden_error
from ironbell.apiserver.identities.accounts import account_groups, split_user_name

_EXTRA_PREFIX = "impersonate-extra-"
_NODE_PREFIX = "system:node:"
_ANONYMOUS = "system:anonymous"
_AUTHENTICATION = "authentication.k8s.io"

Headers = Sequence[tuple[str, str]]


def requested_identity(headers: Headers) -> Identity | None:
    """The identity that a request's headers ask to impersonate; None without such headers.

    Raises:
        BadRequest: they have groups, a uid or extra fields without a user name.
    """
    user, uid = "", ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for name, value in headers:
        lower = name.lower()
        if not lower.startswith("impersonate-"):
            continue
        if lower == "impersonate-user":
            user = user or value
        elif lower == "impersonate-uid":
            uid = uid or value
        elif lower == "impersonate-group":
            groups.append(value)
        elif lower.startswith(_EXTRA_PREFIX):
            extra.setdefault(unquote(lower.removeprefix(_EXTRA_PREFIX)), []).append(value)
    if not user and (uid or groups or extra):
        raise BadRequest("requested groups, uid or extra without impersonating a user name")
    facts = tuple(sorted((key, tuple(values)) for key, values in extra.items()))
    return Identity(user, tuple(groups), uid, facts) if user else None


def impersonated(target: Identity, requestor: Identity, authorizer: Authorizer, *, attributes: Attributes) -> Identity:
    """Return the identity that the requestor acts as in a request with these attributes.

    Raises:
        Forbidden: the requestor lacks the permission; the first missing one is reported, as upstream does.
    """
    first: Forbidden | None = None
    for mode in (*_modes(target), ""):
        try:
            if mode:
                on = msgspec.structs.replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}")
                _require(authorizer, requestor, on)
            return _checked(target, requestor, authorizer, mode=mode)
        except Forbidden as error:
            first = first or error
    raise first or Forbidden("all impersonation modes failed")


def _modes(target: Identity) -> Iterator[str]:
    only_name = not (target.groups or target.uid or target.extra)
    if target.user.startswith(_NODE_PREFIX):
        if only_name:
            yield "arbitrary-node"
    elif split_user_name(target.user) is not None:
        if only_name:
            yield "serviceaccount"
    else:
        yield "user-info"


def _checked(target: Identity, requestor: Identity, authorizer: Authorizer, *, mode: str) -> Identity:
    """The identity to act as, after every part of it has been allowed."""
    if mode and MASTERS in target.groups:
        attributes = Attributes(f"impersonate:{mode}", _AUTHENTICATION, "groups", name=MASTERS)
        raise forbidden_error(requestor, attributes, reason="impersonating the system:masters group is not allowed")
    for attributes in _parts(target, mode=mode):
        _require(authorizer, requestor, attributes)
    groups = target.groups or _fixed_groups(target.user, mode=mode)
    if target.user == _ANONYMOUS:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return Identity(target.user, groups, target.uid, target.extra)


def _fixed_groups(user: str, *, mode: str) -> tuple[str, ...]:
    account = split_user_name(user)
    if account is not None:
        return account_groups(account[0])
    return ("system:nodes",) if mode.endswith("node") else ()


def _parts(target: Identity, *, mode: str) -> Iterator[Attributes]:
    verb = f"impersonate:{mode}" if mode else "impersonate"
    group = _AUTHENTICATION if mode else ""
    account = split_user_name(target.user)
    if account is not None:
        yield Attributes(verb, group, "serviceaccounts", *account)
    elif mode.endswith("node"):
        yield Attributes(verb, group, "nodes", name=target.user.removeprefix(_NODE_PREFIX))
    else:
        yield Attributes(verb, group, "users", name=target.user)
    if target.uid:
        yield Attributes(verb, _AUTHENTICATION, "uids", name=target.uid)
    for name in target.groups:
        yield Attributes(verb, group, "groups", name=name)
    for key, values in target.extra:
        for value in values:
            yield Attributes(verb, _AUTHENTICATION, "userextras", name=value, subresource=key)


def _require(authorizer: Authorizer, requestor: Identity, attributes: Attributes) -> None:
    decision = authorizer.decide(requestor, attributes)
    if not decision.allowed:
        raise forbidden_error(requestor, attributes, reason=decision.reason)
