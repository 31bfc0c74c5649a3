"""Bootstrap tokens: alive until the machine is a node, made again when lost, and never somebody else's."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from ironbell.api.bootstrap import KUBEADM_CONFIG
from ironbell.api.client import Answer, Call, PatchType, Verb
from ironbell.api.cluster.machinepool import MACHINE_POOL
from ironbell.api.core.secret import SECRET
from ironbell.base.clock import parse_rfc3339
from ironbell.base.randomness import SeededRandomness
from ironbell.controllers.kubeadm.config import tokens
from ironbell.controllers.kubeadm.config.tokens import Lifetime, TokenError, TokenState
from ironbell.kube.patches import apply
from ironbell.kube.testing.world import NotSettledError, World, drive
from support.kubeadm.world import (
    RECONCILER,
    SITE,
    add_cluster,
    add_machine,
    add_pairs,
    add_pool,
    config,
    file_of,
    join,
    new_world,
)

JOIN_FILE = "/run/kubeadm/kubeadm-join-config.yaml"
NOW = World().now()


@pytest.fixture
def world() -> World:
    """A worker on its way, with its data made."""
    world = new_world()
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    world.settle(RECONCILER)
    return world


def token_of(world: World, name: str = "w1") -> str:
    return config(world, name).spec.join_configuration.discovery.bootstrap_token.token


def values(world: World, index: int = 0) -> dict[str, str]:
    """What a token's Secret in the workload cluster holds."""
    secret = world.outside.tokens()[index]
    return {key: base64.b64decode(value).decode() for key, value in secret.data.items()}


def left(world: World) -> timedelta:
    """How long the token lives on."""
    return parse_rfc3339(values(world)["expiration"]) - world.now()


def drop_tokens(world: World) -> None:
    for secret in world.outside.tokens():
        drive(world.outside.api.delete(SECRET.collection, *secret.key))


def test_the_secret_is_what_clusters_accept(world: World) -> None:
    public, secret = token_of(world).split(".")
    found = world.outside.tokens()[0]
    assert (found.metadata.namespace, found.metadata.name) == ("kube-system", f"bootstrap-token-{public}")
    assert found.type == "bootstrap.kubernetes.io/token"
    held = values(world)
    assert held.pop("description")
    assert held == {
        "token-id": public,
        "token-secret": secret,
        "expiration": "2026-01-01T00:15:00Z",
        "usage-bootstrap-signing": "true",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }


def test_it_never_comes_near_its_end_while_the_machine_is_on_its_way(world: World) -> None:
    token = token_of(world)
    for _ in range(20):
        world.settle(RECONCILER, horizon_s=600)
        assert left(world) >= timedelta(minutes=7.5)
        assert len(world.outside.tokens()) == 1
    assert world.now() - NOW > timedelta(hours=1)
    assert token_of(world) == token


def test_a_cluster_is_asked_for_a_token_only_when_it_has_had_it_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cluster is asked is bounded by the second: a thousand workers at once wait for each other."""
    world = new_world()
    api, read, created = world.outside.api, list[str](), list[str]()
    carry_out = api.call

    async def counted(call: Call) -> Answer:
        if call.verb is Verb.GET:
            read.append(call.name)
        elif call.verb is Verb.CREATE:
            created.append(call.collection.plural)
        answer: Answer = await carry_out(call)
        return answer

    monkeypatch.setattr(api, "call", counted)
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    world.settle(RECONCILER)
    assert (read, created) == ([], ["secrets"])
    world.settle(RECONCILER, horizon_s=299)
    assert read == []
    world.clock.advance(300)
    world.forget()
    world.settle(RECONCILER)
    assert set(read) == {f"bootstrap-token-{token_of(world).split('.')[0]}"}


def test_a_token_that_was_made_before_a_crash_is_taken(world: World) -> None:
    """The controller died between the token and the data."""
    before = values(world)
    drive(world.api.delete(SECRET.collection, SITE, "w1"))
    reset: dict[str, Any] = {"status": {"initialization": None, "conditions": None}}
    body = msgspec.json.encode(reset)
    drive(
        world.api.patch(KUBEADM_CONFIG.collection, SITE, "w1", body, patch_type=PatchType.MERGE, subresource="status")
    )
    world.settle(RECONCILER)
    assert world.require(SECRET, SITE, "w1").data
    assert values(world) == before
    assert not world.errors


def test_it_is_left_to_expire_when_the_machine_is_a_node(world: World) -> None:
    join(world, "w1")
    world.settle(RECONCILER, horizon_s=3600)
    assert values(world)["expiration"] == "2026-01-01T00:15:00Z"


def test_a_lost_token_is_made_again_and_is_the_same(world: World) -> None:
    """kubernetes-sigs/cluster-api#2770: the host has read it already, so only the same one helps."""
    before, data = token_of(world), world.require(SECRET, SITE, "w1")
    drop_tokens(world)
    world.settle(RECONCILER, horizon_s=400)
    assert f"{values(world)['token-id']}.{values(world)['token-secret']}" == before == token_of(world)
    assert world.require(SECRET, SITE, "w1") == data
    assert "BootstrapTokenRecreated" in {event.reason for event in world.emitted}


def test_an_expired_token_lives_again_after_a_long_absence(world: World) -> None:
    world.clock.advance(3600)
    world.forget()
    world.settle(RECONCILER)
    assert left(world) == timedelta(minutes=15)


def test_a_token_without_an_end_stays_so(world: World) -> None:
    (key, held) = next(iter(world.outside.api.objects[SECRET.collection].items()))
    body = msgspec.json.encode(apply(held, {"data": {"expiration": None}}))
    drive(world.outside.api.replace(SECRET.collection, *key, body))
    world.forget()
    world.settle(RECONCILER, horizon_s=3600)
    assert "expiration" not in values(world)


def test_a_cluster_that_does_not_answer_is_asked_again(world: World) -> None:
    world.outside.connected = False
    world.settle(RECONCILER, horizon_s=240)
    world.outside.connected = True
    world.settle(RECONCILER, horizon_s=240)
    assert left(world) > timedelta(minutes=7.5)


def test_the_secret_of_another_token_with_the_same_id_is_not_touched(world: World) -> None:
    (key, held) = next(iter(world.outside.api.objects[SECRET.collection].items()))
    other = base64.b64encode(b"anotheranother00").decode()
    expired = base64.b64encode(b"2025-12-31T00:00:00Z").decode()
    body = msgspec.json.encode(apply(held, {"data": {"token-secret": other, "expiration": expired}}))
    drive(world.outside.api.replace(SECRET.collection, *key, body))
    world.forget()
    world.clock.advance(300)
    with pytest.raises(NotSettledError):
        world.settle(RECONCILER, max_rounds=5)
    assert values(world)["expiration"] == "2025-12-31T00:00:00Z"
    message = {error.message for error in world.errors}.pop()
    assert "belongs to another token" in message
    assert token_of(world).split(".")[1] not in message


def test_a_pool_gets_another_token_when_half_of_the_time_is_over() -> None:
    world = new_world()
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_pool(world, "pool", nodes=1)
    world.settle(RECONCILER)
    first = token_of(world, "pool")
    world.settle(RECONCILER, horizon_s=700)
    second = token_of(world, "pool")
    assert second != first
    assert second in file_of(world, "pool", JOIN_FILE)
    assert len(world.outside.tokens()) == 2
    pool = world.require(MACHINE_POOL, SITE, "pool")
    world.change(MACHINE_POOL, pool, {"spec": {"replicas": 2}})
    world.settle(RECONCILER, horizon_s=3600)
    assert token_of(world, "pool") == second, "a pool that grows keeps its token alive"
    index = [values(world, number)["token-id"] for number in range(2)].index(second.split(".")[0])
    assert parse_rfc3339(values(world, index)["expiration"]) > world.now()


@pytest.mark.parametrize(
    ("state", "short", "past_half"),
    [
        (TokenState(exists=False), True, True),
        (TokenState(exists=True), False, False),
        (TokenState(exists=True, expires=NOW + timedelta(minutes=12.5)), True, False),
        (TokenState(exists=True, expires=NOW + timedelta(minutes=12.6)), False, False),
        (TokenState(exists=True, expires=NOW + timedelta(minutes=7.4)), True, True),
    ],
)
def test_lifetime(state: TokenState, short: bool, past_half: bool) -> None:
    lifetime = Lifetime()
    assert lifetime.check_interval_s == 300
    assert lifetime.is_short(state, NOW) is short
    assert lifetime.is_past_half(state, NOW) is past_half


def test_new_tokens_have_the_form_and_differ() -> None:
    made = {tokens.new_token(SeededRandomness(seed)) for seed in range(50)}
    assert len(made) == 50
    for token in made:
        assert tokens.token_id(token) == token[:6]


@pytest.mark.parametrize(
    "token", ["", "abc", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef0123456789abcdef"]
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(TokenError, match="is not of the form"):
        tokens.token_id(token)


def test_an_expiration_that_is_no_time_is_refused() -> None:
    with pytest.raises(TokenError, match=r"expiration in the bootstrap token.s Secret is not a valid time"):
        tokens.state_of({"expiration": b"soon"})
    assert tokens.state_of({"expiration": b"2026-01-01T00:00:00Z"}).expires == datetime.fromisoformat(
        "2026-01-01T00:00:00Z"
    )
