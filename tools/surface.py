"""Compare what two checkouts offer to their users: definitions, manifests, roles, metrics, names, commands, options.

    python tools/surface.py compare BEFORE AFTER   compare two checkouts; status 1 if they differ
    python tools/surface.py write CHECKOUT FOLDER  write the surface of one checkout into a folder

`compare` prints a unified diff for each file that differs, and a table of all parts at the end. It works through the
command line, HTTP and the pages of docs/reference, and imports nothing of either checkout, so that it can compare
versions whose code is arranged differently. `docs/contributing/index.md` says what the surface consists of.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from surface.checkout import Checkout, CheckoutError
from surface.comparison import compare
from surface.writing import PARTS, write


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 if the surfaces are equal, 1 if they differ, 2 if one of them cannot be had."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare", help="compare two checkouts")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--keep", type=Path, metavar="FOLDER", help="keep both surfaces below this folder")
    writing = commands.add_parser("write", help="write the surface of one checkout into a folder")
    writing.add_argument("checkout", type=Path)
    writing.add_argument("folder", type=Path)
    for parsing in (comparing, writing):
        parsing.add_argument(
            "--python",
            type=Path,
            metavar="PROGRAM",
            help="interpreter with the dependencies, for checkouts without a .venv of their own  [default: this one]",
        )
        parsing.add_argument(
            "--parts", default=",".join(PARTS), metavar="PART,...", help="parts of the surface  [default: %(default)s]"
        )
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"--parts: unknown {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    python = options.python or Path(sys.executable)
    try:
        if options.command == "write":
            write(Checkout.at(options.checkout, python), options.folder, parts)
            return 0
        checkouts = {"before": Checkout.at(options.before, python), "after": Checkout.at(options.after, python)}
        with tempfile.TemporaryDirectory(prefix="surface-") as temporary:
            folder = options.keep or Path(temporary)
            for name, checkout in checkouts.items():
                write(checkout, folder / name, parts)
            comparison = compare(folder / "before", folder / "after")
    except CheckoutError as error:
        sys.stderr.write(f"surface: {error}\n")
        return 2
    sys.stdout.write(comparison.text)
    return 1 if comparison.differs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
