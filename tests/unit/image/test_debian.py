"""Where packages come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.image.debian import (
    BuildError,
    Package,
    chosen_sources,
    file_sources,
    host_sources,
    parse_archive_names,
    select_entries,
)

DEB822 = """\
# the distribution's own
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
  contrib

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://vendor.example/node
Suites: nodistro
Components: main
"""


def test_takes_the_release_out_of_deb822_sources() -> None:
    key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    assert select_entries(DEB822, "bookworm") == [
        f"deb {key} http://mirror.example/debian bookworm main",
        f"deb {key} http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/debian-security bookworm-security main contrib",
    ]


def test_takes_the_release_out_of_one_line_sources() -> None:
    text = (
        "deb http://m.example/debian bookworm main\n# deb http://x bookworm main\n"
        "deb-src http://m.example/debian bookworm main\ndeb https://vendor.example/apt cloud-sdk-bookworm main\n"
        "deb [arch=amd64 signed-by=/k] http://m.example/debian bookworm-updates main\n"
    )
    assert select_entries(text, "bookworm") == [
        "deb http://m.example/debian bookworm main",
        "deb [arch=amd64 signed-by=/k] http://m.example/debian bookworm-updates main",
    ]


def test_another_distribution_is_told_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text('ID=fedora\nVERSION_CODENAME=""\nPRETTY_NAME="Fedora"\n')
    with pytest.raises(BuildError, match="--sources"):
        host_sources(tmp_path)


def test_a_host_without_sources_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "etc/apt").mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    with pytest.raises(BuildError, match="no apt source for bookworm"):
        host_sources(tmp_path)


def test_sources_and_release_are_given_together(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="belong together"):
        chosen_sources(tmp_path / "x", "")
    with pytest.raises(BuildError, match=r"--sources: .* cannot be read: no such file"):
        file_sources(tmp_path / "missing", "bookworm")


def test_reads_packages_off_archive_names() -> None:
    listing = (
        "libc6_2.36-9+deb12u10_amd64.deb\nbusybox_1%3a1.35.0-4_amd64.deb\npartial\nlibc6_2.36-9+deb12u10_amd64.deb\n"
    )
    assert parse_archive_names(listing) == [
        Package("busybox", "1:1.35.0-4", "amd64"),
        Package("libc6", "2.36-9+deb12u10", "amd64"),
    ]
