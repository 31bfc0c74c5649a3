"""Fixtures shared by all tests; each subject has its own module in `support`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["support.cluster", "support.installation", "support.kubectl"]
