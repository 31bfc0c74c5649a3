"""image2disk against `zstd -dc | dd` and `pigz -dc | dd`: same image, same HTTP server, same disk, same run.

The disk is a loop device over a file; the image is made of incompressible, compressible and empty parts, as a disk
image is. Each pipe is `curl | decompressor | dd`, once through the page cache with a final fsync and once with direct
output, and the better of the two counts. Every candidate runs `--rounds` times in turn; medians are compared.

Needs root, losetup, curl, zstd, pigz. Prints a table and, per format, the ratio of our speed to the pipe's; the
status is 1 where a ratio is below `--goal`.

    python bench/image2disk.py [--size-mib 1024] [--rounds 3] [--goal 0.9] [--folder DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import http.server
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MIB = 1 << 20


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A static server that does not write a log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def copyfile(self, source: object, outputfile: object) -> None:
        """Send by sendfile, so that the server costs next to nothing."""
        self.wfile.flush()
        self.connection.sendfile(source)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """An HTTP server over a folder, in a process of its own, so that it shares no interpreter lock."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import image2disk; image2disk.serve(sys.argv[2])"
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def serve(folder: str) -> None:
    """Serve until killed; prints the port."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


def make_image(path: Path, size_mib: int) -> str:
    """An image that compresses about as disk images do; returns its SHA-256."""
    source = random.Random(1)
    words = [source.randbytes(source.randint(3, 11)) for _ in range(4000)]
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for index in range(size_mib):
            kind = index % 10
            if kind < 3:
                block = bytes(MIB)
            elif kind < 5:
                block = source.randbytes(MIB)
            else:
                block = b"".join(source.choices(words, k=MIB // 6))[:MIB].ljust(MIB, b"\0")
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


@contextlib.contextmanager
def loop_device(path: Path, size: int) -> Iterator[str]:
    """A loop device over a new file."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    device = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", str(path)], capture_output=True, text=True, check=True
    ).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        path.unlink()


def pipe(url: str, device: str, *, decompressor: str, output: str) -> None:
    """What a person would type."""
    command = f"curl -sf {url} | {decompressor} | dd of={device} bs=4M iflag=fullblock {output} status=none"
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True)


def agent(url: str, device: str, *, digest: str = "") -> None:
    """Our action, as the agent starts it."""
    environment = {**os.environ, "IMG_URL": url, "DEST_DISK": device, "IMG_RAW_CHECKSUM": digest}
    command = [sys.executable, "-m", "ironbell.agent.actions", "image2disk"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def timed(work: Callable[[], None]) -> float:
    """Seconds that the work took, with cold page cache."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("1")
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def digest_of(device: str, size: int) -> str:
    """SHA-256 of what is on the device."""
    digest = hashlib.sha256()
    with Path(device).open("rb", buffering=0) as file:
        left = size
        while left:
            block = file.read(min(left, 4 * MIB))
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def compare(
    name: str, url: str, *, decompressor: str, device: str, digest: str, arguments: argparse.Namespace
) -> float:
    """Run all candidates in turn; the ratio of our speed to that of the better pipe."""
    size = arguments.size_mib * MIB
    candidates: dict[str, Callable[[], None]] = {
        f"{decompressor} | dd, cached": lambda: pipe(url, device, decompressor=decompressor, output="conv=fsync"),
        f"{decompressor} | dd, direct": lambda: pipe(
            url, device, decompressor=decompressor, output="oflag=direct conv=fsync"
        ),
        "image2disk": lambda: agent(url, device),
        "image2disk, verified": lambda: agent(url, device, digest=f"sha256:{digest}"),
    }
    times: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    for _ in range(arguments.rounds):
        for candidate, work in candidates.items():
            times[candidate].append(timed(work))
            assert digest_of(device, size) == digest, f"{candidate} wrote something else"
    speeds = {candidate: size / MIB / statistics.median(values) for candidate, values in times.items()}
    for candidate, speed in speeds.items():
        print(f"{name:5} {candidate:28} {speed:7.0f} MiB/s")
    best = max(speed for candidate, speed in speeds.items() if "dd" in candidate)
    ratio: float = speeds["image2disk"] / best
    print(f"{name:5} ratio to the better pipe: {ratio:.2f} (verified: {speeds['image2disk, verified'] / best:.2f})")
    return ratio


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size-mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--goal", type=float, default=0.9)
    parser.add_argument("--folder", type=Path, default=None, help="where image and disk lie (default: a temporary one)")
    arguments = parser.parse_args()
    missing = [tool for tool in ("losetup", "curl", "zstd", "pigz") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        print(f"needs root and these programs: {', '.join(missing) or 'all there'}", file=sys.stderr)
        return 2
    ratios = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder_name:
        folder = Path(folder_name)
        digest = make_image(folder / "disk.img", arguments.size_mib)
        subprocess.run(["zstd", "-q", "-T0", "-3", folder / "disk.img", "-o", folder / "disk.img.zst"], check=True)
        subprocess.run(["pigz", "-6", "-k", folder / "disk.img"], check=True)
        (folder / "disk.img").unlink()
        with served(folder) as base, loop_device(folder / "disk", arguments.size_mib * MIB) as device:
            for name, file, decompressor in (("zstd", "disk.img.zst", "zstd -dc"), ("gzip", "disk.img.gz", "pigz -dc")):
                url = f"{base}/{file}"
                ratios.append(
                    compare(name, url, decompressor=decompressor, device=device, digest=digest, arguments=arguments)
                )
    return 0 if min(ratios) >= arguments.goal else 1


if __name__ == "__main__":
    sys.exit(main())
