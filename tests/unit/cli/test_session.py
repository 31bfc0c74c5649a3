"""Where commands find the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.cli.session import NoApiError, UnknownKindError, kubeconfig_paths, named, object_named, objects_named


def test_all_that_are_there_are_taken_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "d"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a::{tmp_path}/d:{tmp_path}/b")
    assert kubeconfig_paths(None) == [tmp_path / "d", tmp_path / "b"]
    assert kubeconfig_paths(tmp_path / "given") == [tmp_path / "given"]


def test_an_account_without_a_home_folder_is_told_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(NoApiError, match="give --kubeconfig"):
        kubeconfig_paths(None)


def test_a_word_may_mean_kinds_of_several_groups() -> None:
    kinds, name = objects_named("machine/a")
    assert ([kind.group for kind in kinds], name) == (["bmc.tinkerbell.org", "cluster.x-k8s.io"], "a")
    assert [kind.group for kind in objects_named("Machine.cluster.x-k8s.io/a")[0]] == ["cluster.x-k8s.io"]
    assert object_named("machine/a")[0].group == "bmc.tinkerbell.org"
    assert [kind.kind for kind in objects_named("kcp/a")[0]] == ["KubeadmControlPlane"]
    with pytest.raises(UnknownKindError, match="must be KIND/NAME"):
        objects_named("machine")


def test_a_kind_may_be_apart_from_the_name_or_left_out() -> None:
    assert named(("workflow/w",)) == named(("workflow", "w")) == ([WORKFLOW], "w", False)
    kinds, name, bare = named(("w",))
    assert (kinds[0], name, bare) == (CLUSTER, "w", True)
    assert WORKFLOW in kinds
    for words in (("workflow", "w", "x"), ("workflow/w", "x")):
        with pytest.raises(UnknownKindError, match="must be KIND/NAME, KIND NAME or NAME"):
            named(words)
