"""The program that our default template writes to the disk: it sends what a failed bootstrap printed. Pure.

cloud-init reports that a module failed, but not what the module printed, and kubeadm's cause is only there. The unit of
cloud-init's last stage runs the program when the stage has failed. It needs nothing but the Python and the YAML that
cloud-init needs itself, and reads the address from cloud-init's own configuration. Where there is no systemd it never
runs, and the failure is reported without output.
"""

from __future__ import annotations

from typing import Final

PROGRAM_PATH: Final = "/etc/cloud/ironbell-report-failure"
UNIT_PATH: Final = "/etc/systemd/system/cloud-final.service.d/10-ironbell.conf"
UNIT: Final = f"""\
[Service]
ExecStopPost=-/usr/bin/env python3 {PROGRAM_PATH}
"""
PROGRAM: Final = """\
# Reports the end of the output of a bootstrap that failed. systemd runs it when cloud-final.service ends.
import glob, json, os, time, urllib.request
import yaml

LOG = "/var/log/cloud-init-output.log"
if os.environ.get("SERVICE_RESULT") == "success":
    raise SystemExit
endpoints = []
for path in sorted(glob.glob("/etc/cloud/cloud.cfg.d/*.cfg")):
    with open(path) as file:
        config = yaml.safe_load(file) or {}
    for handler in (config.get("reporting") or {}).values():
        if isinstance(handler, dict) and handler.get("type") == "webhook":
            endpoints.append(handler["endpoint"])
with open(LOG, "rb") as file:
    file.seek(max(os.path.getsize(LOG) - 32768, 0))
    lines = file.read().decode(errors="replace").splitlines()
own = ("cloud-init", "Cloud-init v.")
lines = [line for line in lines if not line.startswith(own) and "py[WARNING]:" not in line][-40:]
report = {
    "name": "modules-final",
    "description": "bootstrap failed",
    "event_type": "finish",
    "result": "FAIL",
    "output": "\\n".join(lines),
}
body = json.dumps(report).encode()
for endpoint in endpoints:
    for _ in range(5):
        try:
            request = urllib.request.Request(endpoint, body, {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=10).close()
            break
        except OSError as error:
            print("report not sent:", error)
            time.sleep(2)
"""
