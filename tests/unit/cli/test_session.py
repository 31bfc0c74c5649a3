"""Where commands find the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.cli.session import (
    NoApiError,
    UnknownKindError,
    kubeconfig_paths,
    named,
    object_named,
    objects_named,
    others_meant,
)


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


def test_of_several_kinds_it_is_said_which_one_is_shown() -> None:
    said = "These are machines.bmc.tinkerbell.org. There are also machines.cluster.x-k8s.io."
    assert others_meant("machines") == others_meant("Machine") == said
    assert others_meant("hardware") == others_meant("machines.cluster.x-k8s.io") == ""


@pytest.mark.parametrize(
    ("word", "near"),
    [("hardwar", "hardware"), ("machin", "machine"), ("clustr", "cluster"), ("Workflwos", "workflows")],
)
def test_an_unknown_kind_is_answered_with_the_nearest_one(word: str, near: str) -> None:
    with pytest.raises(UnknownKindError) as refused:
        objects_named(f"{word}/a")
    assert str(refused.value) == f'there is no kind "{word.lower()}" here. Did you mean "{near}"?'


def test_a_wrong_group_is_answered_with_those_that_have_the_kind() -> None:
    with pytest.raises(UnknownKindError) as refused:
        objects_named("machines.bmc/a")
    meant = "machines.bmc.tinkerbell.org or machines.cluster.x-k8s.io"
    assert str(refused.value) == f'there is no kind "machines.bmc" here. Did you mean {meant}?'


def test_without_a_near_kind_all_are_named_once() -> None:
    with pytest.raises(UnknownKindError) as refused:
        objects_named("pods/a")
    kinds = str(refused.value).removeprefix('there is no kind "pods" here. Kinds are: ').removesuffix(".").split(", ")
    assert "machines.cluster.x-k8s.io" in kinds
    assert "machines.bmc.tinkerbell.org" in kinds
    assert "hardware" in kinds
    assert len(set(kinds)) == len(kinds)


def test_a_kind_may_be_apart_from_the_name_or_left_out() -> None:
    assert named(("workflow/w",)) == named(("workflow", "w")) == ([WORKFLOW], "w", False)
    kinds, name, bare = named(("w",))
    assert (kinds[0], name, bare) == (CLUSTER, "w", True)
    assert WORKFLOW in kinds
    for words in (("workflow", "w", "x"), ("workflow/w", "x")):
        with pytest.raises(UnknownKindError, match="must be KIND/NAME, KIND NAME or NAME"):
            named(words)
