"""The command: fuzz targets, feed one input again, replay the corpus, or make it small."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from pathlib import Path

import msgspec

from . import corpus, minimize, runner, targets
from .checks import bounded, silence

_SAMPLE = 100
"""Random changes of the corpus that a replay tries for each target."""
_BUDGET = 14_000


def main() -> int:
    """Run what the arguments say; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    defaults = runner.Enough()
    parser.add_argument("target", nargs="+", choices=[*targets.NAMES, "all"], help="what is fuzzed")
    parser.add_argument("--inputs", type=int, default=defaults.inputs, help="fuzz at least so many")
    parser.add_argument("--minutes", type=float, default=defaults.seconds / 60, help="and at least so long")
    parser.add_argument(
        "--unchanged", type=int, default=defaults.unchanged, help="and until so many inputs reached no new branch"
    )
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="targets at the same time")
    parser.add_argument("--seed", type=int, default=0, help="of the fuzzer's chance; 0: another one each time")
    parser.add_argument("--input", type=Path, help="feed this file once, and fuzz nothing")
    parser.add_argument("--replay", action="store_true", help="feed the corpus of the repository, and changes of it")
    parser.add_argument("--minimize", action="store_true", help="make the corpus anew of what was reached here")
    given = parser.parse_args()
    # Before a target makes what logs.
    silence()
    names = targets.NAMES if "all" in given.target else tuple(dict.fromkeys(given.target))
    if given.input is not None:
        return _feed(names[0], given.input.read_bytes())
    if given.replay:
        return sum(_replay(name) for name in names)
    if given.minimize:
        return sum(_minimize(name) for name in names)
    enough = runner.Enough(given.inputs, given.minutes * 60, given.unchanged)
    return _fuzz(names, enough, at_once=given.at_once, seed=given.seed)


def _fuzz(names: tuple[str, ...], enough: runner.Enough, *, at_once: int, seed: int) -> int:
    def tell(text: str) -> None:
        print(text, flush=True)

    tell(runner.HEADING)
    found = asyncio.run(runner.run_all(names, enough, at_once=at_once, tell=tell, seed=seed))
    path = runner.WORK / "figures.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode([one.document() for one in found])))
    tell("\n".join(["", runner.HEADING, *(one.line() for one in found), f"The figures are in {path}."]))
    return int(any(one.found for one in found))


def _feed(name: str, data: bytes) -> int:
    target = targets.load(name)
    with bounded():
        target.one(data)
    print(f"{name}: {len(data)} bytes, nothing is wrong")
    return 0


def _replay(name: str) -> int:
    """Feed the seeds, the corpus, and a few changes of them that are the same each time."""
    target = targets.load(name)
    known = [*target.SEEDS, *corpus.read(name)]
    chance = random.Random(name)
    changed = [_changed(chance.choice(known), target.WORDS, chance) for _ in range(_SAMPLE)]
    for data in [*known, *changed]:
        try:
            with bounded():
                target.one(data)
        except BaseException:
            print(f"{name}: this input fails: {data!r}", file=sys.stderr)
            raise
    print(f"{name}: {len(known)} inputs and {len(changed)} changes of them, nothing is wrong")
    return 0


def _changed(data: bytes, words: tuple[bytes, ...], chance: random.Random) -> bytes:
    """The input with one to four small changes."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.randrange(9))
        put = chance.choice((b"", chance.randbytes(1), chance.choice(words), data[at:to] * 2))
        data = data[:at] + put + data[to:]
    return data


def _minimize(name: str) -> int:
    target = targets.load(name)
    found = [path.read_bytes() for path in (runner.WORK / name / "inputs").glob("*")]
    sources = str(runner.ROOT / "src" / "ironbell")
    taken, missing = minimize.smallest(
        target.one, [*found, *target.SEEDS, *corpus.read(name)], (sources,), budget=_BUDGET
    )
    path = corpus.write(name, taken)
    size = path.stat().st_size
    print(f"{name}: {len(taken)} of {len(found)} inputs, {size} bytes; {missing} pairs of lines are not reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
