"""Signed tokens, tokens from a file, and acting as somebody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ironbell.api.client import BadRequest, Forbidden, Unauthorized
from ironbell.apiserver.access.identity import MASTERS, Identity
from ironbell.apiserver.access.pki import PkiError
from ironbell.apiserver.access.roles import Attributes, Binding, Role, RoleAuthorizer, Rule
from ironbell.apiserver.identities.accounts import AccountTokens, Reference, split_user_name
from ironbell.apiserver.identities.bearer import BearerTokens, StaticTokens
from ironbell.apiserver.identities.impersonation import impersonated, requested_identity
from ironbell.apiserver.identities.jwt import SigningKey
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.store.log import MemoryLog
from ironbell.apiserver.store.store import Store
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

ACCOUNT = Entry("serviceaccounts", ("ns", "robot"), 1, "uid-1", b"{}")
SECRET = Entry("secrets", ("ns", "anchor"), 2, "uid-2", b"{}")


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey.load(tmp_path_factory.mktemp("key") / "sa.key")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> Store:
    created = Store(MemoryLog())
    for entry in (ACCOUNT, SECRET):
        created.objects(entry.resource).put(entry)
    return created


@pytest.fixture
def tokens(key: SigningKey, store: Store, clock: ManualClock) -> AccountTokens:
    return AccountTokens(key, store, clock=clock, randomness=SeededRandomness(1), issuer="https://here")


def issue(
    tokens: AccountTokens, *, audiences: tuple[str, ...] = ("https://here",), bound: Reference | None = None
) -> str:
    return tokens.issue(ACCOUNT, audiences=audiences, seconds=600, bound=bound)


def test_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    first = SigningKey.load(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = SigningKey.load(path)
    assert again.verify(first.sign({"a": 1})) == {"a": 1}


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_broken_key_is_reported(tmp_path: Path, content: str) -> None:
    path = tmp_path / "sa.key"
    path.write_text(content)
    with pytest.raises(PkiError, match="restore it or remove it"):
        SigningKey.load(path)


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "é.é.é", "x" * 10_000])
def test_nonsense_is_no_token(key: SigningKey, token: str) -> None:
    assert key.verify(token) is None


def test_tokens_of_another_key_are_unknown(key: SigningKey, tmp_path: Path) -> None:
    assert key.verify(SigningKey.load(tmp_path / "other.key").sign({"a": 1})) is None


def test_an_unsigned_token_is_unknown(key: SigningKey) -> None:
    header, payload, _ = key.sign({"a": 1}).split(".")
    assert key.verify(f"{header}.{payload}.") is None
    assert key.verify(f"eyJhbGciOiJub25lIn0.{payload}.") is None


def test_a_token_names_its_account(tokens: AccountTokens) -> None:
    holder = tokens.identify(issue(tokens))
    assert holder is not None
    assert holder.identity.user == "system:serviceaccount:ns:robot"
    assert holder.identity.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert holder.audiences == ("https://here",)


def test_a_token_ends_in_time(tokens: AccountTokens, clock: ManualClock) -> None:
    token = issue(tokens)
    clock.advance(600)
    assert tokens.identify(token) is not None
    clock.advance(61)
    with pytest.raises(Unauthorized, match="expired"):
        tokens.identify(token)


def test_a_token_of_the_future_is_not_good_yet(tokens: AccountTokens, key: SigningKey, store: Store) -> None:
    token = issue(tokens)
    past = AccountTokens(key, store, clock=ManualClock(), randomness=SeededRandomness(1), issuer="https://here")
    assert past.identify(token) is not None
    later = ManualClock()
    later.advance(3600)
    ahead = AccountTokens(key, store, clock=later, randomness=SeededRandomness(1), issuer="https://here")
    with pytest.raises(Unauthorized, match="not valid yet"):
        tokens.identify(issue(ahead))


def test_a_token_ends_with_its_account(tokens: AccountTokens, store: Store) -> None:
    token = issue(tokens)
    store.objects("serviceaccounts").put(Entry("serviceaccounts", ("ns", "robot"), 3, "uid-9", b"{}"))
    with pytest.raises(Unauthorized, match="does not match claim"):
        tokens.identify(token)
    store.objects("serviceaccounts").remove(("ns", "robot"))
    with pytest.raises(Unauthorized, match="not found"):
        tokens.identify(token)


def test_a_bound_token_ends_with_its_object(tokens: AccountTokens, store: Store) -> None:
    token = issue(tokens, bound=Reference("secrets", "anchor", "uid-2"))
    assert tokens.identify(token) is not None
    store.objects("secrets").remove(("ns", "anchor"))
    with pytest.raises(Unauthorized, match="invalidated"):
        tokens.identify(token)


def test_an_account_being_deleted_keeps_its_tokens_for_a_minute(
    tokens: AccountTokens, store: Store, clock: ManualClock
) -> None:
    token = issue(tokens)
    body = b'{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}'
    store.objects("serviceaccounts").put(Entry("serviceaccounts", ("ns", "robot"), 3, "uid-1", body, deleting=True))
    assert tokens.identify(token) is not None
    clock.advance(61)
    with pytest.raises(Unauthorized, match="has been deleted"):
        tokens.identify(token)


def test_a_token_is_good_where_it_is_meant_for(tokens: AccountTokens) -> None:
    token = issue(tokens, audiences=("vault",))
    with pytest.raises(Unauthorized, match="audiences"):
        tokens.identify(token)
    holder = BearerTokens([], tokens).review(token, ["vault", "bank"])
    assert holder is not None
    assert holder.audiences == ("vault",)
    assert BearerTokens([], tokens).identify(token) is None


def test_names_of_accounts() -> None:
    assert split_user_name("system:serviceaccount:a:b") == ("a", "b")
    for name in ("alice", "system:serviceaccount:a", "system:serviceaccount::b", "system:serviceaccount:a:b:c"):
        assert split_user_name(name) is None


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.csv"
    path.touch(mode=0o600)
    return path


def test_tokens_from_a_file(token_file: Path) -> None:
    token_file.write_text('secret1,alice,u1\nsecret2,bob,u2,"one, two"\n\n')
    known = StaticTokens(token_file)
    assert known.identify("secret1") == Identity("alice", ("system:authenticated",), "u1")
    assert known.identify("secret2") == Identity("bob", ("one", "two", "system:authenticated"), "u2")
    assert known.identify("secret3") is None


@pytest.mark.parametrize("line", ["token", "token,user", ",user,uid", "token,,uid"])
def test_a_line_with_too_little_is_named(token_file: Path, line: str) -> None:
    token_file.write_text(f"a,b,c\n{line}\n")
    with pytest.raises(PkiError, match="line 2 of") as raised:
        StaticTokens(token_file)
    assert "token," not in raised.value.message.replace("at least token,", "")


def test_a_file_that_others_may_read_is_refused(token_file: Path) -> None:
    token_file.chmod(0o640)
    with pytest.raises(PkiError, match="chmod 600"):
        StaticTokens(token_file)


@pytest.mark.root
def test_a_file_of_another_account_is_refused(token_file: Path) -> None:
    os.chown(token_file, 60771, 60771)
    with pytest.raises(PkiError, match=r'belongs to account "60771", .*; run `chown root '):
        StaticTokens(token_file)


ROBOT = Identity("robot", ("system:authenticated",))
LIST_PODS = Attributes("list", "", "pods", "ns")


def authorizer(*rules: Rule) -> RoleAuthorizer:
    created = RoleAuthorizer()
    created.grant(Role("r", rules), [Binding("r", users=("robot",))])
    return created


def test_headers_that_want_nothing() -> None:
    assert requested_identity([("Accept", "*/*")]) is None


def test_headers_say_whom_to_be() -> None:
    headers = [
        ("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("impersonate-group", "b"),
        ("Impersonate-Extra-Acme.com%2Fx", "1"), ("Impersonate-Uid", "7"),
    ]  # fmt: skip
    assert requested_identity(headers) == Identity("jane", ("a", "b"), "7", (("acme.com/x", ("1",)),))


def test_groups_alone_are_refused() -> None:
    with pytest.raises(BadRequest):
        requested_identity([("Impersonate-Group", "a")])


def test_every_part_must_be_allowed() -> None:
    rules = authorizer(
        Rule(("impersonate",), ("users", "groups"), ("",), ("jane", "a")),
        Rule(("impersonate",), ("userextras/scope",), ("authentication.k8s.io",)),
    )
    jane = Identity("jane", ("a",), "", (("scope", ("x",)),))
    assert impersonated(jane, ROBOT, rules, attributes=LIST_PODS).groups == ("a", "system:authenticated")
    for expected in (Identity("jane", ("b",)), Identity("john"), Identity("jane", ("a",), "7")):
        with pytest.raises(Forbidden):
            impersonated(expected, ROBOT, rules, attributes=LIST_PODS)


def test_the_narrow_way_never_gives_masters() -> None:
    rules = authorizer(Rule(("impersonate:user-info", "impersonate-on:user-info:list"), ("*",), ("*",)))
    assert impersonated(Identity("jane", ("a",)), ROBOT, rules, attributes=LIST_PODS).user == "jane"
    with pytest.raises(Forbidden, match="system:masters"):
        impersonated(Identity("jane", (MASTERS,)), ROBOT, rules, attributes=LIST_PODS)


def test_accounts_and_nodes_have_fixed_groups() -> None:
    rules = authorizer(Rule(("*",), ("*",), ("*",)))
    account = impersonated(Identity("system:serviceaccount:a:b"), ROBOT, rules, attributes=LIST_PODS)
    assert account.groups == ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated")
    node = impersonated(Identity("system:node:n1"), ROBOT, rules, attributes=LIST_PODS)
    assert node.groups == ("system:nodes", "system:authenticated")
    nobody = impersonated(Identity("system:anonymous"), ROBOT, rules, attributes=LIST_PODS)
    assert nobody.groups == ("system:unauthenticated",)
