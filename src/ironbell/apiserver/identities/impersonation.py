"""Acting as somebody else, as far as one may.

There are two ways to be allowed: the verb `impersonate` on whom one wants to be, for everything they may do; or,
narrower, `impersonate:MODE` on whom, together with `impersonate-on:MODE:VERB` on what is done.

Source: kubernetes/apiserver: pkg/endpoints/filters/impersonation (mode.go, constrained_impersonation.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import msgspec

from ironbell.api.client import BadRequest, Forbidden
from ironbell.apiserver.access.identity import AUTHENTICATED, MASTERS, UNAUTHENTICATED, Identity
from ironbell.apiserver.access.roles import Attributes, Authorizer, refusal
from ironbell.apiserver.identities.accounts import account_groups, split_user_name

_EXTRA_PREFIX = "impersonate-extra-"
_NODE_PREFIX = "system:node:"
_ANONYMOUS = "system:anonymous"
_AUTHENTICATION = "authentication.k8s.io"

Headers = Sequence[tuple[str, str]]


def wanted_identity(headers: Headers) -> Identity | None:
    """Whom a request's headers want to be; None if they do not say.

    Raises:
        BadRequest: they name groups, a uid or facts of somebody without a name.
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


def impersonated(wanted: Identity, requestor: Identity, authorizer: Authorizer, *, what: Attributes) -> Identity:
    """Whom the requestor acts as, when they do `what`.

    Raises:
        Forbidden: they may not; of several refusals the first is told, as upstream does.
    """
    first: Forbidden | None = None
    for mode in (*_modes(wanted), ""):
        try:
            if mode:
                on = msgspec.structs.replace(what, verb=f"impersonate-on:{mode}:{what.verb}")
                _require(authorizer, requestor, on)
            return _checked(wanted, requestor, authorizer, mode=mode)
        except Forbidden as error:
            first = first or error
    raise first or Forbidden("all impersonation modes failed")


def _modes(wanted: Identity) -> Iterator[str]:
    only_name = not (wanted.groups or wanted.uid or wanted.extra)
    if wanted.user.startswith(_NODE_PREFIX):
        if only_name:
            yield "arbitrary-node"
    elif split_user_name(wanted.user) is not None:
        if only_name:
            yield "serviceaccount"
    else:
        yield "user-info"


def _checked(wanted: Identity, requestor: Identity, authorizer: Authorizer, *, mode: str) -> Identity:
    """The identity to act as, after every part of it has been allowed."""
    if mode and MASTERS in wanted.groups:
        attributes = Attributes(f"impersonate:{mode}", _AUTHENTICATION, "groups", name=MASTERS)
        raise refusal(requestor, attributes, reason="impersonating the system:masters group is not allowed")
    for attributes in _parts(wanted, mode=mode):
        _require(authorizer, requestor, attributes)
    groups = wanted.groups or _fixed_groups(wanted.user, mode=mode)
    if wanted.user == _ANONYMOUS:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return Identity(wanted.user, groups, wanted.uid, wanted.extra)


def _fixed_groups(user: str, *, mode: str) -> tuple[str, ...]:
    account = split_user_name(user)
    if account is not None:
        return account_groups(account[0])
    return ("system:nodes",) if mode.endswith("node") else ()


def _parts(wanted: Identity, *, mode: str) -> Iterator[Attributes]:
    verb = f"impersonate:{mode}" if mode else "impersonate"
    group = _AUTHENTICATION if mode else ""
    account = split_user_name(wanted.user)
    if account is not None:
        yield Attributes(verb, group, "serviceaccounts", *account)
    elif mode.endswith("node"):
        yield Attributes(verb, group, "nodes", name=wanted.user.removeprefix(_NODE_PREFIX))
    else:
        yield Attributes(verb, group, "users", name=wanted.user)
    if wanted.uid:
        yield Attributes(verb, _AUTHENTICATION, "uids", name=wanted.uid)
    for name in wanted.groups:
        yield Attributes(verb, group, "groups", name=name)
    for key, values in wanted.extra:
        for value in values:
            yield Attributes(verb, _AUTHENTICATION, "userextras", name=value, subresource=key)


def _require(authorizer: Authorizer, requestor: Identity, attributes: Attributes) -> None:
    decision = authorizer.decide(requestor, attributes)
    if not decision.allowed:
        raise refusal(requestor, attributes, reason=decision.reason)
