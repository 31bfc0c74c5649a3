"""What the API process loads before it answers: imports are most of a cold start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("start_process.py")
NOT_NEEDED = {
    "aiohttp": "the API speaks HTTP itself",
    "google.protobuf": "few clients ask for it",
    "grpclib": "services are in other processes",
    "ironbell.api.cluster": "its kinds are defined when the API answers",
    "ironbell.api.conversion.convert": "for the first object in an older version",
    "ironbell.controllers.capi.controllers": "they start when the API answers",
    "ironbell.controllers.tink.controllers": "they start when the API answers",
    "ironbell.contract.access": "what they may do is granted then",
    "ironbell.kube.manager.manager": "so does what runs them",
    "ironbell.apiserver.openapi.documents": "for the first client that asks for a document",
    "ironbell.apiserver.tables.columns": "for the first table",
    "jsonpatch": "for the first JSON patch",
    "pygments": "no user is shown a traceback",
    "rich": "no user is shown a traceback",
    "yaml": "clients send JSON, and the kubeconfig is written by hand",
}


def loaded(folder: Path) -> set[str]:
    """The modules of a process whose API is ready."""
    command = [sys.executable, str(SCRIPT), str(folder)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_a_start_loads_what_it_needs(tmp_path: Path) -> None:
    for occasion in ("first start", "later start"):
        modules = loaded(tmp_path)
        assert "ironbell.apiserver.core" in modules
        assert sorted(modules & NOT_NEEDED.keys()) == [], occasion
