"""structlog as it is where nobody has installed rich: importing this module before it is enough.

structlog loads rich, where that can be found, to colour the tracebacks of its console renderer. No user is shown a
traceback, and rich with what it loads in turn costs a sixth of the start of an API process. It is there beside
development tools only, for whom it stays importable.
"""

from __future__ import annotations

import sys


def _import_structlog() -> None:
    if "rich" in sys.modules:
        import structlog  # somebody has paid for it already

        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python is told that a module cannot be imported
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


_import_structlog()
