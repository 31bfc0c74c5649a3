"""An action of an installation that hangs: it is stopped in time, the installation tried again, and then surfaced."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import yaml

from ironbell.demo.run import NODE
from ironbell.lab.files import read_state
from support.network.namespaces import within
from support.servers.captinstallation import MACHINE, capt_machine, documents
from support.servers.installation import Artefacts, Installation, installation

pytestmark = [pytest.mark.root]

TRIED_S, LIMIT_S = 180, 4
PORT = 8099


def template(seen: Installation) -> str:
    """Two actions: one that ends at once, one that waits for an image that never comes."""
    written = {"DEST_DISK": "/dev/vda", "IMG_URL": f"http://{seen.site.lab.gateway}:{PORT}/never.raw"}
    actions = [
        {"name": "erase the disk", "image": "wipe", "timeout": 60, "environment": {"DEST_DISK": "/dev/vda"}},
        {"name": "write the image", "image": "image2disk", "timeout": LIMIT_S, "environment": written},
    ]
    task = {"name": "install", "worker": "{{ .device_1 }}", "volumes": ["/dev:/dev"], "actions": actions}
    document = {"version": "0.1", "name": "hangs", "global_timeout": 600, "tasks": [task]}
    return yaml.safe_dump(document)


async def test_installation_whose_action_hangs_is_tried_again_and_then_surfaced(
    tmp_path: Path, artefacts: Artefacts, kubectl_binary: Path
) -> None:
    async with (
        installation(tmp_path, artefacts, firmware="uefi", kind="namespace") as seen,
        capt_machine(seen, kubectl_binary, tmp_path) as machine,
    ):
        place = (seen.site.lab.gateway, PORT)
        # connections are made, and nobody ever answers them
        silent = within(Path(seen.site.lab.network_namespace).name, lambda: socket.create_server(place))
        with silent:
            annotations = {"ironbell.dev/install-attempts": "2"}
            spec = {"templateOverride": template(seen)}
            await machine.apply(*seen.objects())
            await machine.apply(
                *documents("unused.example/none:v1", "#cloud-config\n", machine=spec, annotations=annotations)
            )
            await machine.until(
                lambda: machine.reason == "InstallationFailed", within_s=TRIED_S, what="the end of the second attempt"
            )
        why = f"the action did not end within its timeout of {LIMIT_S} s"
        failed = "Attempt 1 of 2 failed and is retried: "
        assert any(text.startswith(failed) and why in text for text in machine.said), machine.said
        assert machine.said[-1].startswith("The installation failed 2 of 2 times: ")
        assert why in machine.said[-1]
        assert seen.state(MACHINE) == "TIMEOUT"
        assert seen.action_state(MACHINE, "erase the disk") == "SUCCESS"
        assert seen.action_state(MACHINE, "write the image") == "TIMEOUT"
        assert read_state(seen.site.data_dir).machine(NODE).starts == 2, "once for each attempt"
        # whoever looks at the Machine sees it too, and a MachineHealthCheck can act on it
        owner = await machine.get("machine.cluster.x-k8s.io", MACHINE)
        assert why in json.dumps(owner["status"]["conditions"])
