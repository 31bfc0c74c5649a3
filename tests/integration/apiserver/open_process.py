"""Opens a database and ends: the process that `test_migration` kills.

python open_process.py DATABASE KEY_FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ironbell.apiserver.store.keys import KeyFile
from ironbell.apiserver.store.sqlite import SqliteLog


async def main(path: Path, keys: Path) -> None:
    log = SqliteLog(path, KeyFile(keys))
    print("opening", flush=True)
    log.open(lambda rows, failure: None)
    await log.close()
    print("closed", flush=True)


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
