"""States are kept as a whole, and a file that cannot be read is a new server's."""

from __future__ import annotations

from pathlib import Path

from ironbell.lab.fleet.state import AgentStart, DiskContents, FileStore, Node, Runs, ServerState

STATE = ServerState(
    on=True,
    runs=Runs.INSTALLED_SYSTEM,
    boots=3,
    target="Pxe",
    enabled="Once",
    agent=AgentStart(agent_id="a", host="127.0.0.1", port=1),
    disks={"/dev/sda": DiskContents(image="x", files={"/a": "b"})},
    node=Node(instance="i", hostname="h", user_data="#cloud-config", joined=True),
    wipes=2,
)


def test_states_are_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    FileStore(folder).save("sim-0001", STATE)
    store = FileStore(folder)
    assert store.load("sim-0001") == STATE
    assert store.load("sim-0002") == ServerState()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_a_new_server(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / "sim-0001.json").write_text('{"on": tr')
    assert store.load("sim-0001") == ServerState()
