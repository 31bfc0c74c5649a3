"""Reading what is on a disk's file."""

from __future__ import annotations

from pathlib import Path

from ironbell.demo.disks import bytes_written, holds, is_blank

SIZE = 64 << 20


def disk(folder: Path) -> Path:
    path = folder / "disk0.raw"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


def write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_new_disk_is_blank(tmp_path: Path) -> None:
    assert is_blank(disk(tmp_path))
    assert bytes_written(disk(tmp_path)) == 0


def test_zeros_that_were_written_are_blank(tmp_path: Path) -> None:
    path = disk(tmp_path)
    write(path, 20 << 20, bytes(1 << 20))
    assert is_blank(path)
    assert bytes_written(path) == 0


def test_the_last_byte_counts(tmp_path: Path) -> None:
    path = disk(tmp_path)
    write(path, SIZE - 1, b"x")
    assert not is_blank(path)
    assert bytes_written(path) == 4096


def test_a_text_across_pieces_is_found(tmp_path: Path) -> None:
    path = disk(tmp_path)
    write(path, 0, b"x" * (9 << 20))
    write(path, (8 << 20) - 3, b"needle")
    assert holds(path, b"needle")
    assert not holds(path, b"needles")
    assert bytes_written(path) == 9 << 20
