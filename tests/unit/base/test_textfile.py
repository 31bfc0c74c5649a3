"""Files that users name: what each wrong kind of file is answered with, wherever one is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironbell.app.site.options import read_options
from ironbell.base.errors import IronbellError
from ironbell.base.textfile import read_text_file
from ironbell.lab.description import read as read_lab
from ironbell.lab.fleet.faults import read as read_faults

READERS: list[Callable[[Path], Any]] = [
    lambda path: read_text_file(path, purpose="a text"),
    lambda path: read_options(path, {}),
    read_lab,
    read_faults,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02\x01\xff\xfe\0")
    (tmp_path / "nul").write_bytes(b"a: b\0\n")
    return tmp_path


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("binary", "binary is a binary file; give "),
        ("nul", "nul is a binary file; give "),
        ("none", "there is no file "),
        ("", " is a folder; give the file that holds "),
        ("/proc/self/mem", "/proc/self/mem cannot be read: input/output error; give a file that holds "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_what_to_give(
    folder: Path, read: Callable[[Path], Any], name: str, expected: str
) -> None:
    with pytest.raises(IronbellError) as problem:
        read(folder / name)
    assert expected in str(problem.value)


@pytest.mark.parametrize("content", ["", "[1, 2]", "a: [b\n c: {"])
@pytest.mark.parametrize("read", READERS[1:3])
def test_text_that_is_no_mapping_is_rejected(tmp_path: Path, read: Callable[[Path], Any], content: str) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(IronbellError) as problem:
        read(tmp_path / "file")
    assert str(tmp_path / "file") in str(problem.value)
    assert "mapping" in str(problem.value) or "line 2" in str(problem.value)
    assert "Expected" not in str(problem.value)
