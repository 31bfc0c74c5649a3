"""The child's side of supervision."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from ironbell.app.processes.child import raise_file_limit


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_low_limit_of_open_files_is_raised_as_far_as_allowed(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    raise_file_limit(1000)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1000, hard)
    raise_file_limit(600)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1000, hard), "never lowered"
