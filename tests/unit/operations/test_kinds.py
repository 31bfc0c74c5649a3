"""Which kind and which object a word means."""

from __future__ import annotations

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.operations.kinds import UnknownKindError, kinds_named, others_meant, parse_target


def test_a_word_may_mean_kinds_of_several_groups() -> None:
    kinds, name, _ = parse_target(["machine/a"])
    assert ([kind.group for kind in kinds], name) == (["bmc.tinkerbell.org", "cluster.x-k8s.io"], "a")
    assert [kind.group for kind in kinds_named("Machine.cluster.x-k8s.io")] == ["cluster.x-k8s.io"]
    assert [kind.kind for kind in kinds_named("kcp")] == ["KubeadmControlPlane"]
    with pytest.raises(UnknownKindError, match="is not KIND/NAME"):
        parse_target(["machine/"])


def test_of_several_kinds_it_is_said_which_one_is_shown() -> None:
    said = "This table shows machines.bmc.tinkerbell.org. The word also means machines.cluster.x-k8s.io."
    assert others_meant("machines") == others_meant("Machine") == said
    assert others_meant("hardware") == others_meant("machines.cluster.x-k8s.io") == ""


@pytest.mark.parametrize(
    ("word", "near"),
    [("hardwar", "hardware"), ("machin", "machine"), ("clustr", "cluster"), ("Workflwos", "workflows")],
)
def test_an_unknown_kind_is_answered_with_the_nearest_one(word: str, near: str) -> None:
    with pytest.raises(UnknownKindError) as refused:
        kinds_named(word)
    assert str(refused.value) == f'"{word.lower()}" is not a known kind. Did you mean "{near}"?'


def test_a_wrong_group_is_answered_with_those_that_have_the_kind() -> None:
    with pytest.raises(UnknownKindError) as refused:
        kinds_named("machines.bmc")
    meant = "machines.bmc.tinkerbell.org or machines.cluster.x-k8s.io"
    assert str(refused.value) == f'"machines.bmc" is not a known kind. Did you mean {meant}?'


def test_without_a_near_kind_all_are_named_once() -> None:
    with pytest.raises(UnknownKindError) as refused:
        kinds_named("pods")
    kinds = str(refused.value).removeprefix('"pods" is not a known kind. Known kinds: ').removesuffix(".").split(", ")
    assert "machines.cluster.x-k8s.io" in kinds
    assert "machines.bmc.tinkerbell.org" in kinds
    assert "hardware" in kinds
    assert len(set(kinds)) == len(kinds)


def test_a_kind_may_be_apart_from_the_name_or_left_out() -> None:
    assert parse_target(("workflow/w",)) == parse_target(("workflow", "w")) == ([WORKFLOW], "w", False)
    kinds, name, bare = parse_target(("w",))
    assert (kinds[0], name, bare) == (CLUSTER, "w", True)
    assert WORKFLOW in kinds
    for words in (("workflow", "w", "x"), ("workflow/w", "x")):
        with pytest.raises(UnknownKindError, match="is not KIND/NAME, KIND NAME or NAME"):
            parse_target(words)
