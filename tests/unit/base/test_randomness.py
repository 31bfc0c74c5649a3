"""Identifiers of the system's generator, whose bytes are read ahead: none is made twice."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from ironbell.base.randomness import SystemRandomness, uuid4


def test_every_size_is_kept() -> None:
    source = SystemRandomness()
    assert [len(source.token_bytes(size)) for size in (0, 1, 8, 16, 17, 5000)] == [0, 1, 8, 16, 17, 5000]


def test_threads_share_no_bytes() -> None:
    source = SystemRandomness()
    with ThreadPoolExecutor(8) as pool:
        made = [*pool.map(lambda _: uuid4(source), range(20_000))]
    assert len(set(made)) == len(made)


def test_a_forked_process_has_other_bytes() -> None:
    source = SystemRandomness()
    source.token_bytes(16)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, source.token_bytes(16))
        finally:
            os._exit(0)  # this process must not go on as a second run of the tests
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        theirs = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert len(theirs) == 16
    assert theirs != source.token_bytes(16)
