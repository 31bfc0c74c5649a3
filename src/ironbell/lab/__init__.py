"""Virtual bare metal for laboratories, demonstrations and tests. No product code imports it.

A lab is described in a file (`description`), has a network namespace of its own (`network`), QEMU machines with real
firmware (`machine`, `qemu`), and a virtual Redfish BMC for each (`redfish`). It runs as a process of its own
(`process`), started by `ironbell up --lab FILE`.
"""
