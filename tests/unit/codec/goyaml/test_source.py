"""Source scalars keep their text, as yaml.v3 does in a string place."""

from __future__ import annotations

import pytest

from ironbell.codec.goyaml import Mapping, Scalar, Sequence, YamlError, load_source_scalars


def test_scalars_keep_text_value_and_line() -> None:
    tree = load_source_scalars("a: 010\nb: yes\nc: 1.0\nd: 'true'\ne:\nf: [1]\n")
    assert isinstance(tree, Mapping)
    assert tree.entries == {
        "a": Scalar("010", 8, 1),
        "b": Scalar("yes", "yes", 2),
        "c": Scalar("1.0", 1.0, 3),
        "d": Scalar("true", "true", 4),
        "e": Scalar("", None, 5),
        "f": Sequence((Scalar("1", 1, 6),), 6),
    }


def test_duplicate_keys_are_errors_with_both_lines() -> None:
    with pytest.raises(YamlError, match="line 3: mapping key 'a' already defined at line 1"):
        load_source_scalars("a: 1\nb: 2\na: 3\n")


def test_merge_keys_never_replace_what_is_there() -> None:
    tree = load_source_scalars("x: &x {a: 1, b: 2}\ny: {a: 3, <<: *x}")
    assert isinstance(tree, Mapping)
    inner = tree.entries["y"]
    assert isinstance(inner, Mapping)
    assert {key: item.text for key, item in inner.entries.items() if isinstance(item, Scalar)} == {"a": "3", "b": "2"}
