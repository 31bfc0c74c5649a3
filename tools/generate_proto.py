"""Generate the Python modules of `src/ironbell/codec/proto` from the `.proto` files there.

Run from anywhere after a change of a `.proto` file: `python tools/generate_proto.py`. Needs the development extra
(grpcio-tools and grpclib's plugin). Modules import each other by their full names, because the files are named by
their path below `src`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE_ROOT = Path(__file__).resolve().parent.parent / "src"
PROTO_FOLDER = SOURCE_ROOT / "ironbell" / "codec" / "proto"


def main() -> int:
    """Generate messages, type stubs and service bases; the status is the compiler's."""
    names = sorted(str(path.relative_to(SOURCE_ROOT)) for path in PROTO_FOLDER.glob("*.proto"))
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={SOURCE_ROOT}",
        f"--python_out={SOURCE_ROOT}",
        f"--pyi_out={SOURCE_ROOT}",
        f"--grpclib_python_out={SOURCE_ROOT}",
        *names,
    ]
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
    return subprocess.run(command, cwd=SOURCE_ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
