"""Check sums: the agent's against coreutils' `sha256sum`, over the same file.

    python bench/checksums.py [--megabytes 256] [--rounds 3]

Both read a file that is in the page cache. Rounds alternate between the two; the best round of each is compared, since
other work on the machine only makes a round slower.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ironbell.agent.actions.streams.checksum import Checksum

MB = 1_000_000
CHUNK = 1 << 20


def ours(file: Path, digest: str) -> None:
    checksum = Checksum("CHECKSUM", f"sha256:{digest}")
    deque(checksum.over(chunks(file)), maxlen=0)
    checksum.verify(file.name)


def peers(file: Path, digest: str) -> None:
    line = subprocess.run(["sha256sum", file], check=True, capture_output=True, text=True).stdout
    assert line.split()[0] == digest


def chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    runs = {"ironbell": ours}
    if shutil.which("sha256sum"):
        runs["sha256sum"] = peers
    best = dict.fromkeys(runs, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "image"
        with file.open("wb") as stream:
            for _ in range(options.megabytes):
                stream.write(os.urandom(MB))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        for _ in range(options.rounds):
            for name, run in runs.items():
                start = time.perf_counter()
                run(file, digest)
                best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:10} {options.megabytes / seconds:8.0f} MB/s")
    if "sha256sum" in best:
        print(f"ratio      {best['sha256sum'] / best['ironbell']:8.2f} x sha256sum")


if __name__ == "__main__":
    main()
