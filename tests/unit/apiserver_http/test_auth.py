"""Who a request comes from."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.client import Unauthorized
from ironbell.apiserver.access.auth import ANONYMOUS, Tokens, authenticate, certificate_identity, is_open
from ironbell.apiserver.access.identity import AUTHENTICATED, Identity
from ironbell.apiserver.access.pki import PkiError
from ironbell.base.randomness import SeededRandomness, SystemRandomness

PEER: dict[str, Any] = {
    "subject": ((("organizationName", "system:masters"),), (("organizationName", "b"),), (("commonName", "me"),))
}


@pytest.fixture
def tokens() -> Tokens:
    return Tokens(None, SeededRandomness(1))


def test_a_certificate_states_user_and_groups(tokens: Tokens) -> None:
    assert authenticate({}, PEER, tokens) == Identity("me", ("system:masters", "b", AUTHENTICATED))


def test_a_certificate_without_a_name_is_nobody(tokens: Tokens) -> None:
    assert certificate_identity({"subject": ((("organizationName", "system:masters"),),)}) is None
    assert authenticate({}, {"subject": ()}, tokens) == ANONYMOUS


def test_a_token_is_good_until_replaced_or_revoked(tokens: Tokens) -> None:
    first = tokens.issue("wire", ["services"])
    assert authenticate({"Authorization": f"Bearer {first}"}, None, tokens).user == "wire"
    second = tokens.issue("wire", ["services"])
    assert tokens.identify(first) is None
    assert tokens.identify(second) == Identity("wire", ("services", AUTHENTICATED))
    tokens.revoke("wire")
    assert tokens.identify(second) is None


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer ", "Basic YTpi", "Bearer \udcff", "x"])
def test_wrong_credentials_are_refused_not_anonymous(tokens: Tokens, header: str) -> None:
    with pytest.raises(Unauthorized):
        authenticate({"Authorization": header}, None, tokens)


def test_no_credentials_are_anonymous(tokens: Tokens) -> None:
    assert authenticate({}, None, tokens) == ANONYMOUS


def test_tokens_outlive_the_process_as_digests_only(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = Tokens(path, SystemRandomness()).issue("wire")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    again = Tokens(path, SystemRandomness()).identify(token)
    assert again is not None
    assert again.user == "wire"


def test_a_broken_token_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text("{]")
    with pytest.raises(PkiError, match="remove it to withdraw all tokens"):
        Tokens(path, SystemRandomness())


def test_open_paths() -> None:
    assert [is_open(path) for path in ("/version", "/readyz/ping", "/api", "/versions", "/metrics")] == [
        True, True, False, False, False,
    ]  # fmt: skip
