"""A folder that looks like a checkout of Ironbell to `tools/surface.py`: its program answers from a file.

What differs from run to run in a real one does so here: uids, times, versions, ports.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Answers = dict[str, Any]

_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HEAD = "Usage: ironbell{} [OPTIONS]\n\nOptions:\n  -h, --help  Show this message and exit.\n"

ANSWERS: Answers = {
    "help": {
        "": _HEAD.format("") + "\nCommands:\n  up     Start.\n  crds   Print.\n",
        "up": _HEAD.format(" up"),
        "crds": _HEAD.format(" crds"),
    },
    "completion": "complete ironbell\n",
    "crds": {
        "a.example.com": "---\nspec:\n  group: a.example.com\n",
        "b.example.com": "---\nspec:\n  group: b.example.com\n",
    },
    "install": "---\nkind: Namespace\n",
    "metrics": {
        "core": '# HELP requests_total Requests.\n# TYPE requests_total counter\nrequests_total{verb="get"} 7\n'
        "# TYPE requests_created gauge\nrequests_created 1.7e9\n",
        "boot": "# HELP dhcp Messages.\n# TYPE dhcp gauge\ndhcp 3\n",
        "workflow": "# HELP calls Calls.\n# TYPE calls gauge\n",
        "run": '# HELP runs Runs.\n# TYPE runs gauge\ncontroller_runtime_max_concurrent_reconciles{controller="a"} 1\n',
    },
    "rules": [{"verbs": ["get"], "resources": ["hardware"]}],
    "api": {
        "/": {"paths": ["/api", "/apis"]},
        "/api": {"versions": ["v1"]},
        "/api/v1": {"resources": [{"name": "secrets"}]},
        "/api/v1/serviceaccounts": {"items": []},
        "/apis": {"groups": [{"name": "tinkerbell.org", "versions": [{"groupVersion": "tinkerbell.org/v1alpha1"}]}]},
        "/apis/tinkerbell.org": {"name": "tinkerbell.org"},
        "/apis/tinkerbell.org/v1alpha1": {"resources": [{"name": "hardware"}]},
        "/version": {"major": "1"},
        "/openapi/v2": {"swagger": "2.0"},
        "/openapi/v3": {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=0A"}}},
        "/openapi/v3/api/v1": {"openapi": "3.0.0"},
        _DEFINITIONS: {"items": [{"metadata": {"name": "hardware.tinkerbell.org"}, "spec": {"scope": "Namespaced"}}]},
        f"{_RBAC}/clusterroles": {"items": [{"metadata": {"name": "ironbell:boot"}, "rules": [{"verbs": ["get"]}]}]},
        f"{_ADMISSION}/validatingwebhookconfigurations": {
            "items": [{"metadata": {"name": "ironbell"}, "webhooks": [{"clientConfig": {"caBundle": "MASKED"}}]}]
        },
    },
    "docs": {
        "metrics.md": "| metric | type | labels | meaning |\n| `requests_total` | counter | `verb` | Requests. |\n",
        "annotations.md": "| name | on |\n| `ironbell.dev/hold` | Hardware |\n",
        **{name: f"# {name}\n" for name in ("cli.md", "inventory.md", "kinds.md", "ports.md", "writes.md")},
    },
    "source": '"""Not `ironbell.dev/documented`."""\n\nHOLD = "ironbell.dev/hold"\nAPI = "tinkerbell.org/v1alpha1"\n',
}  # fmt: skip

_PROGRAM = """
import base64, json, sys, threading, time, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANSWERS = json.loads((Path(__file__).parents[2] / "answers.json").read_text())
WORDS = sys.argv[1:]


class Handler(BaseHTTPRequestHandler):
    metrics = ""

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path in ("/metrics", "/readyz"):
            self.answer(200, self.metrics.encode())
        elif path in ANSWERS["api"]:
            answer = ANSWERS["api"][path]
            for item in answer.get("items", []):
                changing = {"uid": str(uuid.uuid4()), "resourceVersion": str(time.monotonic_ns())}
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                item["metadata"] |= changing | {"creationTimestamp": now}
                for webhook in item.get("webhooks", []):
                    webhook["clientConfig"]["caBundle"] = str(time.monotonic_ns())
            self.answer(200, json.dumps(answer | {"server": "127.0.0.1:%d" % self.server.server_port}).encode())
        else:
            self.answer(404, b"{}")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        user = self.headers["Impersonate-User"]
        self.answer(200, json.dumps({"status": {"user": user, "resourceRules": ANSWERS["rules"]}}).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def serve(port, metrics):
    handler = type("Handler", (Handler,), {"metrics": ANSWERS["metrics"][metrics]})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def option(name):
    inline = [word.partition("=")[2] for word in WORDS if word.startswith(name + "=")]
    return inline[0] if inline else WORDS[WORDS.index(name) + 1]


if "--help" in WORDS:
    print(ANSWERS["help"][" ".join(word for word in WORDS if word != "--help")], end="")
elif WORDS[0] == "completion":
    print(ANSWERS["completion"], end="")
elif WORDS[0] == "crds":
    groups = WORDS[1:] or sorted(ANSWERS["crds"])
    if unknown := set(groups) - set(ANSWERS["crds"]):
        sys.exit("no definitions of %s" % ", ".join(sorted(unknown)))
    print("".join(ANSWERS["crds"][group] for group in groups), end="")
elif WORDS[0] == "install":
    print(ANSWERS["install"], end="")
elif WORDS[0] == "run":
    first = int(option("--health-address").rpartition(":")[2])
    for port in range(first, first + (3 if "controllers" in WORDS else 1)):
        serve(port, "run")
    threading.Event().wait()
elif WORDS[0] == "up":
    folder = Path(option("--data-dir"))
    folder.mkdir()
    user = dict.fromkeys(("client-certificate-data", "client-key-data"), base64.b64encode(b"none").decode())
    cluster = {"server": "http://127.0.0.1:%d" % serve(0, "core"), "certificate-authority-data": "bm9uZQ=="}
    config = {"clusters": [{"cluster": cluster}], "users": [{"user": user}]}
    (folder / "kubeconfig").write_text(json.dumps(config))
    if "--http-port" in WORDS:
        serve(int(option("--http-port")), "boot")
        serve(int(option("--workflow-http-port")), "workflow")
    print("ready", folder / "kubeconfig", flush=True)
    threading.Event().wait()
"""


def small_checkout(folder: Path, answers: Answers = ANSWERS) -> Path:
    """Write a checkout that answers so."""
    package, docs = folder / "src" / "ironbell", folder / "docs" / "reference"
    package.mkdir(parents=True)
    docs.mkdir(parents=True)
    (folder / "answers.json").write_text(json.dumps(answers))
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(_PROGRAM)
    (package / "names.py").write_text(answers["source"])
    for name, text in answers["docs"].items():
        (docs / name).write_text(text)
    return folder


def plant(answers: Answers, *path: str, value: Any) -> Answers:
    """Put another value at a path of the answers, and return them."""
    place = answers
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return answers
