"""structlog as it is where nobody has installed rich: importing this module before it is enough.

structlog loads rich, if it is installed, to colour the tracebacks of its console renderer. No user sees a traceback,
and rich with its imports costs a sixth of the start of an API process. It is installed with development tools only,
which can still import it.
"""

from __future__ import annotations

import sys


def _import_structlog() -> None:
    if "rich" in sys.modules:
        import structlog  # it is loaded already

        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # marks a module that cannot be imported
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


_import_structlog()
