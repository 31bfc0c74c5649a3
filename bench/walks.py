"""How long the short random walks of `make test` take through the real processes, against their bound of a minute.

The same walks, seeds and pace as `tests/integration/lives/test_walks.py`, where a busy machine may take three times as
long: `ironbell up --simulate N`, what people do with kubectl and `ironbell`, kills and starts among it. The limit that
they are compared with is the walk's own waiting: its pauses, and what it leaves in peace to see whether it stays.

    python bench/walks.py [--seeds 38 46] [--bound 60]

The status is 1 when a walk does not end as asked, or takes longer than the bound.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.lives.processes import SHORT, SHORT_S, SHORT_SEEDS, SHORT_STEPS, walk
from support.lives.rigs import RIGS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SHORT_SEEDS), metavar="SEED", help="which walks")
    parser.add_argument("--bound", type=float, default=SHORT_S, metavar="SECONDS", help="what each may take")
    given = parser.parse_args()
    missed = 0
    for seed in given.seeds:
        with tempfile.TemporaryDirectory(prefix="ironbell-walk-") as folder:
            done = walk(seed, Path(folder) / "site", RIGS["embedded"], steps=SHORT_STEPS, pace=SHORT)
        met = not done.failure and done.took_s <= given.bound
        missed += not met
        print(f"{done}; {done.took_s / given.bound:.2f} of the bound, load {os.getloadavg()[0]:.1f}", flush=True)
        if done.failure:
            print(done.failure, flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
