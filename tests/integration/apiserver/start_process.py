"""Starts the embedded API as `ironbell up` does, says which modules it has loaded, and ends: for `test_start`.

python start_process.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ironbell.api import bmc, tinkerbell
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.serve import serve
from ironbell.apiserver.store.keys import KeyFile
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.processes.logs import configure_logging
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.cel import compile_rule


async def main(folder: Path) -> None:
    configure_logging(process="core")
    async with (
        ApiServer.open(
            folder / "api.db",
            keys=KeyFile(folder / "storage.keys"),
            clock=SystemClock(),
            randomness=SystemRandomness(),
            definitions=[crd_document(kind) for kind in (*tinkerbell.KINDS, *bmc.KINDS)],
            compile_rule=compile_rule,
            conversions=ClusterKinds().conversions,
        ) as server,
        serve(server, data_dir=folder, tls_address=("127.0.0.1", 0)),
    ):
        print(" ".join(sys.modules), flush=True)


asyncio.run(main(Path(sys.argv[1])))
