"""Several kubeconfigs put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.kubeconfig import choose
from ironbell.kube.transport.tokens import ConnectionConfigError


def write(path: Path, **parts: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    sections = {
        f"{kind}s": [{"name": name, kind: value} for name, value in parts.get(kind, {}).items()]
        for kind in ("context", "cluster", "user")
    }
    path.write_bytes(msgspec.json.encode({**sections, "current-context": parts.get("current", "")}))
    return path


async def test_the_first_file_that_sets_something_wins_and_paths_start_from_its_folder(tmp_path: Path) -> None:
    one = write(tmp_path / "one" / "config", cluster={"k": {"server": "http://one"}}, user={"u": {"tokenFile": "tok"}})
    two = write(
        tmp_path / "two" / "config",
        current="c",
        context={"c": {"cluster": "k", "user": "u", "namespace": "n"}},
        cluster={"k": {"server": "http://two"}, "only": {"server": "http://only"}},
        user={"u": {"token": "two"}},
    )
    (tmp_path / "one" / "tok").write_text("first")
    chosen = choose([one, two])
    assert (chosen.context, chosen.namespace, chosen.cluster.text("server")) == ("c", "n", "http://one")
    connection = from_kubeconfig([one, two], environment={})
    assert dict(await connection.headers())["Authorization"] == "Bearer first"
    assert from_kubeconfig([two, one], environment={}).server == "http://two"


def test_what_no_file_has_is_told_with_all_of_them(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one"), write(tmp_path / "two")
    with pytest.raises(ConnectionConfigError, match=rf'{one}, {two}: there is no context "x", and no other one'):
        choose([one, two], "x")


async def test_all_that_can_be_impersonated_is_sent(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"example.org/why": ["x", "y"]}}
    path = write(
        tmp_path / "config",
        current="c",
        context={"c": {"cluster": "k", "user": "u"}},
        cluster={"k": {"server": "http://h"}},
        user={"u": {**user, "username": "u", "password": "p"}},
    )
    assert await from_kubeconfig(path, environment={}).headers() == [
        ("User-Agent", "ironbell"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.org%2Fwhy", "x"),
        ("Impersonate-Extra-example.org%2Fwhy", "y"),
        ("Authorization", "Basic dTpw"),
    ]
