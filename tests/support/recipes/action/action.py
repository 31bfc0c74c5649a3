"""banner: print a text into the action's log.

`TEXT`, `TIMES` (1).
"""

from __future__ import annotations

from ironbell.agent.actions.context import Context


def run(context: Context) -> None:
    """Print the text."""
    text = context.required("TEXT")
    for _ in range(int(context.number("TIMES", default=1.0))):
        context.log(text)
