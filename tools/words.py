"""Find banned words in the source and the documentation: in identifiers, docstrings, comments, texts and pages.

    python tools/words.py                    check src, docs and README.md
    python tools/words.py --only PATH...     check some files or folders
    python tools/words.py --clean            check what is in line already (tools/words/clean.txt); lint does this
    python tools/words.py --rule NAME...     check some rules only, such as found
    python tools/words.py --statistics       print counts per rule and per package in place of the findings

The status is 1 if something is found, and 2 if a path or file cannot be read. `docs/contributing/words.md` explains the
rules, which are data in the package `words` beside this program.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from words.checking import UnreadableError, check_files
from words.identifier_rules import IDENTIFIERS
from words.statistics import statistics
from words.text_rules import TEXTS

ROOT = Path(__file__).resolve().parent.parent
ALL = ("src", "docs", "README.md")
CLEAN = Path(__file__).resolve().parent / "words" / "clean.txt"


class PathError(Exception):
    """A path that is to be checked does not exist, or is outside the repository."""


def files_below(root: Path, paths: Sequence[str], *, named_by: str) -> list[Path]:
    """Return Python modules and Markdown pages at or below the paths, each once, in order.

    Raises:
        PathError: a path does not exist, or is outside the repository; the message names where it was given.
    """
    files: set[Path] = set()
    for path in paths:
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            raise PathError(f"{named_by}: {path} is outside {root}; name a path in the repository")
        if not place.exists():
            raise PathError(f"{named_by}: {path} does not exist; name a file or folder in the repository")
        below = (place,) if place.is_file() else (*place.rglob("*.py"), *place.rglob("*.md"))
        files.update(file for file in below if file.suffix in {".py", ".md"})
    return sorted(files)


def clean_paths(text: str) -> list[str]:
    """Read the list of paths that are in line: one a line, with comments that begin with #."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def main(arguments: Sequence[str], *, root: Path = ROOT, clean: Path = CLEAN) -> int:
    """Return the exit status: 0 if nothing was found, 1 if something was, 2 if a path or file cannot be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--only", nargs="+", metavar="PATH", help="check these files or folders")
    scope.add_argument("--clean", action="store_true", help="check the paths in tools/words/clean.txt")
    parser.add_argument("--rule", nargs="+", metavar="NAME", help="check these rules only")
    parser.add_argument("--statistics", action="store_true", help="print counts per rule and per package")
    options = parser.parse_args(arguments)
    known = {rule.name for rule in (*IDENTIFIERS, *TEXTS)}
    if unknown := sorted(set(options.rule or ()) - known):
        parser.error(f"--rule: unknown {', '.join(unknown)}; the rules are {', '.join(sorted(known))}")
    try:
        if options.clean:
            files = files_below(root, clean_paths(clean.read_text()), named_by=clean.name)
        elif options.only:
            here = [str(Path(path).resolve()) for path in options.only]
            files = files_below(root, here, named_by="--only")
        else:
            files = files_below(root, [path for path in ALL if (root / path).exists()], named_by="repository")
        findings = [finding for finding in check_files(root, files) if not options.rule or finding.rule in options.rule]
    except (PathError, UnreadableError) as error:
        sys.stderr.write(f"words: {error}\n")
        return 2
    if options.statistics:
        sys.stdout.write(statistics(findings))
    else:
        sys.stdout.writelines(f"{finding}\n" for finding in findings)
    count = len(findings)
    sys.stdout.write(f"{count} banned word{'' if count == 1 else 's'} in {len(files)} files\n")
    return 1 if findings else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
