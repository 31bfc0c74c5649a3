"""File names in requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.services.tftp.server import PathRejectedError, served_path

TRACE = "-00-23b1e307bb35484f535a1f772c06910e-d887dc3912240434-01"


@pytest.mark.parametrize(
    ("filename", "path"),
    [
        ("ipxe.efi", "ipxe.efi"),
        ("/ipxe.efi", "ipxe.efi"),
        ("//boot//ipxe.efi", "boot/ipxe.efi"),
        ("./boot/./ipxe.efi", "boot/ipxe.efi"),
        ("\\boot\\ipxe.efi", "boot/ipxe.efi"),
        ("01:02:03:04:05:06/undionly.kpxe", "01:02:03:04:05:06/undionly.kpxe"),
        (f"undionly.kpxe{TRACE}", "undionly.kpxe"),
        (f"01:02:03:04:05:06/ipxe.efi{TRACE}", "01:02:03:04:05:06/ipxe.efi"),
        ("pxelinux.cfg/01-02-03-04-05-06-07", "pxelinux.cfg/01-02-03-04-05-06-07"),
        ("...", "..."),
    ],
)
def test_a_name_means_a_relative_path(filename: str, path: str) -> None:
    assert served_path(filename) == path


@pytest.mark.parametrize(
    "filename",
    [
        "",
        "/",
        ".",
        "..",
        "../etc/passwd",
        "boot/../../etc/passwd",
        "..\\etc",
        "a\nb",
        "a\x7f",
        "x" * 1025,
        f"..{TRACE}",
        f"../x{TRACE}",
    ],
)
def test_names_that_leave_the_tree_are_refused(filename: str) -> None:
    with pytest.raises(PathRejectedError):
        served_path(filename)


@given(st.text(max_size=60))
def test_no_name_leads_out(filename: str) -> None:
    try:
        path = served_path(filename)
    except PathRejectedError:
        return
    assert not path.startswith("/")
    assert ".." not in path.split("/")
