"""Large blocks come from the kernel one by one, also after others of their size were freed."""

import subprocess
import sys

_MEASURE = """
import ctypes, re
from ironbell.base.memory import tune_allocator
{tune}
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
for _ in range(4):
    libc.free(libc.malloc(1 << 18))
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "a b c d mmapped f g h i j".split()]
libc.mallinfo2.restype = Info
before = libc.mallinfo2().mmapped
held = [libc.malloc(1 << 18) for _ in range(16)]
print(libc.mallinfo2().mmapped - before >= 16 << 18)
"""


def _large_blocks_apart(tune: str) -> str:
    program = _MEASURE.format(tune=tune)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_large_blocks_are_apart() -> None:
    assert _large_blocks_apart("") == "False", "glibc has changed: is it still needed?"
    assert _large_blocks_apart("tune_allocator()") == "True"
