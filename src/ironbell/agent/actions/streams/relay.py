"""Two threads for one stream: one produces (download and decompress), the other consumes (hash and write).

The queue between them is bounded, so that a slow disk slows the download down. An error of the producer is raised in
the consumer; a consumer that stops early stops the producer.

Both sides work in C most of the time (socket, decompressor, hash, write) and release the interpreter's lock there.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable, Iterator

_DEPTH = 8
_WAKE_S = 0.2


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextlib.contextmanager
def relayed(chunks: Iterable[bytes]) -> Generator[Iterator[bytes]]:
    """The same chunks, produced in another thread while the context lasts."""
    line: queue.Queue[bytes | _End] = queue.Queue(_DEPTH)
    stopped = threading.Event()

    def put(item: bytes | _End) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                line.put(item, timeout=_WAKE_S)
                return True
        return False

    def produce() -> None:
        error: BaseException | None = None
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
        except BaseException as raised:  # noqa: BLE001 - passed to the consumer, which raises it
            error = raised
        put(_End(error))

    producer = threading.Thread(target=produce, name="producer", daemon=True)
    producer.start()
    try:
        yield _drain(line)
    finally:
        stopped.set()
        producer.join(timeout=5.0)


def _drain(line: queue.Queue[bytes | _End]) -> Iterator[bytes]:
    while True:
        item = line.get()
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item
