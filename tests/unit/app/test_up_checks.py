"""What `ironbell up` warns about before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.app.site.checks import warnings
from ironbell.app.site.options import UpOptions


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("vmlinuz-x86_64", "initramfs-x86_64"), ""),
        (("vmlinuz-aarch64", "initramfs-aarch64"), ""),
        ((), "no vmlinuz-x86_64 and no initramfs-x86_64."),
        (("vmlinuz-aarch64", "initramfs-x86_64"), "no initramfs-aarch64."),
    ],
)
def test_a_folder_without_an_in_memory_os_is_warned_about(tmp_path: Path, names: tuple[str, ...], missing: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    found = warnings(UpOptions(data_dir="/srv/site", interface="lo", osie_dir=str(tmp_path)))
    assert len(found) == bool(missing)
    assert all(f'folder "{tmp_path}" has {missing} Build it with' in warning for warning in found)
