"""A site whose servers are reached over sockets, and kubectl on it, for the acceptance tests of seed 000."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import eventually

WITHIN_S = 90.0


@dataclass
class Wire:
    """`ironbell up --simulate`: every service, sockets, and kubectl."""

    kubectl: Path
    kubeconfig: Path
    http_port: int

    def run(self, *words: str, text: str = "") -> str:
        command = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WITHIN_S)
        return done.stdout if done.returncode == 0 else ""

    def items(self, plural: str) -> list[Any]:
        found = self.run("get", plural, "-A", "-o", "json")
        return json.loads(found)["items"] if found else []

    def script(self, mac: str, word: str) -> str:
        """The iPXE script that a server gets, once this is in it."""
        url, found = f"http://127.0.0.1:{self.http_port}/ipxe/script/{mac}/auto.ipxe", [""]

        def look() -> bool:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found[0] = answer.read().decode()
            return word in found[0]

        assert eventually(look), found[0]
        return found[0]
