"""Roles, admission, connect subresources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ironbell.api.client import Forbidden, Invalid, NotFound, PatchType, Selector
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.subresources import ConnectRequest, ConnectResponse

ALICE = Identity("alice", ("team",))
Make = Callable[..., dict[str, Any]]


def attributes(verb: str, resource: str, **more: str) -> Attributes:
    return Attributes(verb, more.pop("group", ""), resource, **more)


RULES: list[tuple[Rule, Attributes, bool]] = [
    (Rule(("get",), ("secrets",)), attributes("get", "secrets"), True),
    (Rule(("get",), ("secrets",)), attributes("list", "secrets"), False),
    (Rule(("get",), ("secrets",)), attributes("get", "secrets", group="apps"), False),
    (Rule(("*",), ("*",), ("*",)), attributes("get", "x", group="y", subresource="status"), True),
    (Rule(("get",), ("workflows",)), attributes("get", "workflows", subresource="status"), False),
    (Rule(("get",), ("workflows/status",)), attributes("get", "workflows", subresource="status"), True),
    (Rule(("get",), ("*/status",)), attributes("get", "workflows", subresource="status"), True),
    (Rule(("get",), ("*/status",)), attributes("get", "workflows"), False),
    (Rule(("get",), ("secrets",), resource_names=("a",)), attributes("get", "secrets", name="a"), True),
    (Rule(("get",), ("secrets",), resource_names=("a",)), attributes("get", "secrets", name="b"), False),
    (Rule(("list",), ("secrets",), resource_names=("a",)), attributes("list", "secrets"), False),
]


@pytest.mark.parametrize(("rule", "wanted", "allowed"), RULES)
def test_rules(rule: Rule, wanted: Attributes, allowed: bool) -> None:
    assert rule.allows(wanted) is allowed


def test_bindings_hold_for_users_groups_and_namespaces() -> None:
    roles = RoleAuthorizer()
    role = Role("reader", (Rule(("get",), ("secrets",)),))
    roles.grant(role, [Binding("reader", groups=("team",), namespace="a"), Binding("reader", users=("bob",))])
    assert roles.decide(ALICE, attributes("get", "secrets", namespace="a")).allowed
    assert not roles.decide(ALICE, attributes("get", "secrets", namespace="b")).allowed
    assert roles.decide(Identity("bob"), attributes("get", "secrets", namespace="b")).allowed


async def test_what_no_role_allows_is_forbidden(as_user: Any, widgets: Any, widget: Make, nodes: Any) -> None:
    alice = as_user(ALICE)
    with pytest.raises(Forbidden) as raised:
        await alice.get(widgets, "a")
    assert raised.value.message == (
        'widgets.example.org "a" is forbidden: User "alice" cannot get resource "widgets" in API group "example.org" '
        'in the namespace "default"'
    )
    assert raised.value.details == {"name": "a", "group": "example.org", "kind": "widgets"}
    with pytest.raises(Forbidden, match='cannot list resource "nodes" in API group "" at the cluster scope'):
        await alice.names(nodes)
    with pytest.raises(Forbidden, match="cannot watch"):
        await alice.watch(widgets, after="1", count=1)
    with pytest.raises(Forbidden, match='cannot create resource "widgets"'):
        await alice.create(widgets, widget("a"))


async def test_a_role_names_verbs_subresources_and_names(
    server: Any, admin: Any, as_user: Any, widgets: Any, widget: Make
) -> None:
    rules = (
        Rule(("patch",), ("widgets/status",), ("example.org",)),
        Rule(("get", "list", "watch", "patch"), ("widgets",), ("example.org",), ("mine",)),
    )
    server.authorizer.grant(Role("r", rules), [Binding("r", users=("alice",))])
    alice = as_user(ALICE)
    await admin.create(widgets, widget("mine"))
    await admin.create(widgets, widget("other"))
    await alice.patch(widgets, "other", {"status": {"phase": "Up"}}, sub="status")
    assert (await alice.get(widgets, "mine"))["metadata"]["name"] == "mine"
    assert await alice.names(widgets, "default", fields="metadata.name=mine") == ["mine"]
    selector = Selector(fields="metadata.name=mine")
    assert len(await alice.watch(widgets, after="0", count=1, selector=selector)) == 1
    for call in (alice.get(widgets, "other"), alice.names(widgets), alice.delete(widgets, "mine")):
        with pytest.raises(Forbidden):
            await call


async def test_applying_what_is_missing_needs_create(server: Any, as_user: Any, widgets: Any) -> None:
    server.authorizer.grant(
        Role("r", (Rule(("patch",), ("widgets",), ("example.org",)),)), [Binding("r", users=("alice",))]
    )
    with pytest.raises(Forbidden, match="cannot create"):
        await as_user(ALICE).patch(widgets, "a", {}, kind=PatchType.APPLY, manager="me")


async def test_admission_changes_and_refuses(server: Any, admin: Any, widgets: Any, widget: Make) -> None:
    seen: list[AdmissionRequest] = []

    async def paint(request: AdmissionRequest) -> dict[str, Any] | None:
        if request.new is None:
            return None
        return {**request.new, "spec": {**request.new["spec"], "color": "blue", "bogus": 1}}

    async def review(request: AdmissionRequest) -> None:
        seen.append(request)
        if request.new is not None and request.new["spec"]["size"] > 5:
            raise Forbidden("too big")

    server.admission.mutating(lambda info: info.plural == "widgets", paint)
    server.admission.validating(lambda info: info.plural == "widgets", review)
    created = await admin.create(widgets, widget("a", color="red"))
    assert created["spec"] == {"color": "blue", "size": 3}
    with pytest.raises(Forbidden, match="too big"):
        await admin.patch(widgets, "a", {"spec": {"size": 6}})
    await admin.delete(widgets, "a")
    assert [request.operation for request in seen] == [Operation.CREATE, Operation.UPDATE, Operation.DELETE]
    assert seen[1].old is not None
    assert seen[1].identity.user == "kubernetes-admin"


async def test_what_does_not_fit_the_schema_is_not_reviewed(
    server: Any, admin: Any, widgets: Any, widget: Make
) -> None:
    seen: list[AdmissionRequest] = []

    async def review(request: AdmissionRequest) -> None:
        seen.append(request)

    server.admission.validating(lambda info: info.plural == "widgets", review)
    with pytest.raises(Invalid, match="size"):
        await admin.create(widgets, widget("a", size="large"))
    await admin.create(widgets, widget("a"))
    with pytest.raises(Invalid, match="size"):
        await admin.patch(widgets, "a", {"spec": {"size": "large"}})
    assert [request.operation for request in seen] == [Operation.CREATE]


async def test_a_write_that_is_overtaken_during_admission_is_decided_again(
    server: Any, admin: Any, widgets: Any, widget: Make
) -> None:
    turns: list[int] = []

    async def interfere(request: AdmissionRequest) -> None:
        if request.operation is Operation.UPDATE and not turns:
            turns.append(1)
            await admin.patch(widgets, "a", {"spec": {"replicas": 7}})

    server.admission.validating(lambda info: info.plural == "widgets", interfere)
    await admin.create(widgets, widget("a"))
    after = await admin.patch(widgets, "a", {"spec": {"size": 9}})
    assert (after["spec"]["size"], after["spec"]["replicas"]) == (9, 7)


async def test_connect_subresources_are_answered_by_their_handler(
    server: Any, admin: Any, as_user: Any, widgets: Any
) -> None:
    async def chunks(text: str) -> AsyncIterator[bytes]:
        yield text.encode()

    async def log(request: ConnectRequest) -> ConnectResponse:
        return ConnectResponse(chunks(f"{request.name} {request.query['tail'][0]}"))

    server.connects.register("example.org", "widgets", subresource="log", handler=log)
    request = ConnectRequest(ALICE, "default", "a", "log", query={"tail": ("5",)})
    answer = await admin.api.connect(widgets, request)
    assert [chunk async for chunk in answer.chunks] == [b"a 5"]
    with pytest.raises(Forbidden, match='cannot get resource "widgets/log"'):
        await as_user(ALICE).api.connect(widgets, request)
    with pytest.raises(NotFound):
        await admin.api.connect(widgets, ConnectRequest(ALICE, "default", "a", "exec"))
