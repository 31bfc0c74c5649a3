"""Upstream's own components for tests, built from their Go modules in `tests/real`.

`python -m support.real [NAME...]` (or `make real`) builds them all, or those that are named; tests build what they need
by themselves. Where that is not possible, what needs them is skipped by name.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from support.gobuild import CannotBuild, build, module_folder

_MODULES = Path(__file__).parents[1] / "real"

KUBERNETES = (
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "kube-scheduler",
    "kubelet",
    "kubeadm",
    "kube-proxy",
)
END_TO_END = "endtoend"
"""Kubernetes' own end-to-end tests of its API machinery."""
_VERSION = "k8s.io/component-base/version"
CLUSTER_API = {
    "capi-core": "core",
    "capi-kubeadm-bootstrap": "bootstrap/kubeadm",
    "capi-kubeadm-control-plane": "controlplane/kubeadm",
}
CLUSTERCTL = "clusterctl"
_ETCD = {"etcd": "server", "etcdctl": "etcdctl", "etcdutl": "etcdutl"}


def component(name: str) -> Path:
    """The program of this name; built if it is not in the cache.

    Raises:
        CannotBuild: with the reason.
    """
    if name in _ETCD:
        return build(_MODULES / "etcd", f"go.etcd.io/etcd/{_ETCD[name]}/v3", name=name)
    if name in CLUSTER_API or name == CLUSTERCTL:
        package = CLUSTER_API.get(name, "cmd/clusterctl")
        return build(_MODULES / "clusterapi", f"sigs.k8s.io/cluster-api/{package}", name=name)
    module = _MODULES / "kubernetes"
    if name == END_TO_END:
        return build(module, f"./{name}", name=name)
    return build(module, f"k8s.io/kubernetes/cmd/{name}", name=name, link=f"-s -w {_version_flags(module)}")


def cluster_api_sources() -> Path:
    """The folder of Cluster API's Go module, where its manifests are.

    Raises:
        CannotBuild: it cannot be downloaded.
    """
    return module_folder(_MODULES / "clusterapi", "sigs.k8s.io/cluster-api")


def _version_flags(module: Path) -> str:
    """What tells a component its version, which is otherwise set by upstream's own build."""
    found = re.search(r"^\s+k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    version, major, minor = found.groups()
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {_VERSION}.{name}={value}" for name, value in facts.items())


def main(names: list[str]) -> int:
    """Build components one after the other, and say where each is."""
    for name in names or [*KUBERNETES, END_TO_END, *_ETCD, *CLUSTER_API, CLUSTERCTL]:
        started = time.monotonic()
        try:
            program = component(name)
        except CannotBuild as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name:24} {time.monotonic() - started:6.1f} s  {program}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
