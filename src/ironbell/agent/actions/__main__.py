"""Run one built-in action: `python -m ironbell.agent.actions NAME [ARGUMENT...]`.

The status is 0, or the failing action's own (1 where it names none).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from ironbell.agent import messages
from ironbell.agent.actions.context import ActionError, Context, ProcessOutput, read_environment
from ironbell.agent.actions.disks import kernel
from ironbell.agent.builtins import MODULES


def main(arguments: list[str]) -> int:
    """Run the action that the first argument names."""
    if not arguments or arguments[0] not in MODULES:
        sys.stderr.write(f"usage: python -m ironbell.agent.actions {{{','.join(sorted(MODULES))}}} [ARGUMENT...]\n")
        return 2
    # An agent that dies ends its action: the server offers the action again, and two must never write one disk.
    kernel.die_with_parent()
    output = ProcessOutput(os.environ)
    environment = read_environment(os.environ)
    context = Context(environment=environment, output=output, command=tuple(arguments[1:]))
    module = importlib.import_module(f"ironbell.agent.actions.{MODULES[arguments[0]]}")
    return call(module.run, context)


def call(run: Callable[[Context], None], context: Context) -> int:
    """Run an action in this process; an error becomes a line, a message to the agent and the status."""
    try:
        run(context)
    except ActionError as error:
        message, status = error.message, error.exit_status
    except OSError as error:
        message, status = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 1
    except MemoryError:
        message, status = "the machine does not have enough memory for this action", 1
    else:
        return 0
    context.send(messages.FailureMessage(message=message))
    sys.stderr.write(f"error: {message}\n")
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
