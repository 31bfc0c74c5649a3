"""Run with cloud-init's packages on Python's path: a network configuration on standard input, what each renderer writes
as output.

The machine's interfaces are given, since cloud-init looks up the names of cards by their MACs in the running system.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
from pathlib import Path

from cloudinit.net import eni, netplan, network_state, networkd

# Relative, because an absolute path is not put under the target.
NETPLAN = "etc/netplan/50-cloud-init.yaml"

given = json.load(sys.stdin)
present = given["present"]
network_state.get_interfaces_by_mac = lambda *_positional, **_named: present
network_state.find_interface_name_from_mac = present.get
written: dict[str, dict[str, str]] = {}
for name, module in (("eni", eni), ("netplan", netplan), ("networkd", networkd)):
    with tempfile.TemporaryDirectory() as folder:
        renderer = module.Renderer({"postcmds": False, "netplan_path": NETPLAN})
        config = copy.deepcopy(given["config"])
        state = network_state.parse_net_config_data(config, skip_broken=False, renderer=renderer)
        renderer.render_network_state(state, target=folder)
        written[name] = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }
json.dump(written, sys.stdout)
