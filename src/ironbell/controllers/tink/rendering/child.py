"""A rendering process: reads requests from its standard input, one after the other, and responds on standard output.

A template is an untrusted program. The engine limits what it uses (`codec.gotemplate.meter`), and this process enforces
limits that the engine cannot: its memory is limited; an alarm that it cannot catch ends it if a request takes too long;
and the kernel ends it with its parent, even while it computes.

Source: prctl(2) (PR_SET_PDEATHSIG), setrlimit(2) (RLIMIT_DATA), setitimer(2), proc_pid_status(5), getrusage(2).
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import BinaryIO, Final

from ironbell.base.errors import IronbellError
from ironbell.base.memory import tune_allocator
from ironbell.codec.gotemplate import LimitError
from ironbell.controllers.tink.rendering.engine import TemplateEngine
from ironbell.controllers.tink.rendering.messages import (
    ANSWER_BYTES,
    LENGTH,
    Answer,
    Check,
    RenderAddress,
    Request,
    encode,
    framed,
    requests,
)

MEMORY_BYTES: Final = 56 << 20
"""Memory that requests may add to the process."""
WALL_S: Final = 20.0
"""Time after which the parent kills this process."""
ALARM_S: Final = WALL_S + 1.0
_GROWN_KB: Final = 24 << 10
_PDEATHSIG: Final = 1
_WARMING: Final = """
name: "{{ regexReplaceAll `a` .x `b` }}"
tasks: [{name: a, worker: b, actions: [{name: c, image: d}]}]
"""


def main() -> int:
    """Serve until standard input ends. The argument is the parent's process id."""
    _die_with(int(sys.argv[1]))
    tune_allocator()
    engine, stdin, stdout = TemplateEngine(), sys.stdin.buffer, sys.stdout.buffer
    _warm(engine)
    _limit_memory()
    before_kb = _memory_kb("VmHWM")
    # Messages of libraries that run out of memory do not belong in the log: the parent reports the exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _send(stdout, Answer())
    while (body := _frame(stdin)) is not None:
        signal.setitimer(signal.ITIMER_REAL, ALARM_S)
        answer = _answered(engine, body)
        has_grown = _memory_kb("VmHWM") - before_kb > _GROWN_KB
        if has_grown:
            answer = _last(answer)
        _send(stdout, answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if has_grown:
            break
    return 0


def _answered(engine: TemplateEngine, body: bytes) -> Answer:
    began = time.process_time()
    try:
        answer = _rendered(engine, requests.decode(body))
    except LimitError as error:
        answer = Answer(problem=error.message, reason=error.reason, is_limit=True)
    except IronbellError as error:
        answer = Answer(problem=error.message, reason=error.reason)
    except MemoryError:
        answer = Answer(problem=out_of_memory(), reason=LimitError.reason, is_limit=True)
    except Exception:  # noqa: BLE001 - the parent logs it
        answer = Answer(defect=traceback.format_exc(limit=-12))
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return Answer(**{**fields, "seconds": time.process_time() - began})


def _rendered(engine: TemplateEngine, request: Request) -> Answer:
    if isinstance(request, Check):
        engine.parse(request.text)
        return Answer()
    if isinstance(request, RenderAddress):
        return Answer(text=engine.address(request.text, request.hardware_spec))
    return Answer(workflow=engine.document(request.text, request.hardware, request.variables))


def out_of_memory() -> str:
    """The message about a template that exceeds the memory limit."""
    return f"the template needs more than {MEMORY_BYTES >> 20} MiB of memory: make its texts and lists shorter"


def _last(answer: Answer) -> Answer:
    return Answer(**{**{name: getattr(answer, name) for name in answer.__struct_fields__}, "is_last": True})


def _send(stdout: BinaryIO, answer: Answer) -> None:
    body = encode(answer)
    if len(body) > ANSWER_BYTES:
        problem = f"the rendered document takes more than {ANSWER_BYTES >> 20} MiB: make it shorter"
        body = encode(Answer(problem=problem, reason=LimitError.reason, is_limit=True, is_last=answer.is_last))
    stdout.write(framed(body))
    stdout.flush()


def _frame(stdin: BinaryIO) -> bytes | None:
    head = stdin.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = stdin.read(size)
    return body if len(body) == size else None


def _warm(engine: TemplateEngine) -> None:
    """Load the modules that the first request needs."""
    engine.document(_WARMING, None, {"x": "a"})


def _limit_memory() -> None:
    most = (_memory_kb("VmData") << 10) + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _memory_kb(name: str) -> int:
    """A memory figure of this process. (`ru_maxrss` does not serve: it includes the parent's memory at the fork.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
