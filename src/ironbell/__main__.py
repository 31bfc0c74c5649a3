"""`python -m ironbell`: the `ironbell` command of exactly this interpreter."""

from __future__ import annotations

from ironbell.cli.main import main

if __name__ == "__main__":
    main()
