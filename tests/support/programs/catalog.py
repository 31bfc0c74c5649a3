"""Every program that tests build from Go modules, with its build time and tier, in one list.

`python -m support.programs.catalog [NAME...]` (or `make real`) builds upstream's components, or the programs that
are named; tests build what they need by themselves. Where that is not possible, what needs them is skipped by name.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.programs.gobuild import CannotBuild, build, module_folder

_TESTS = Path(__file__).parents[2]
_KUBERNETES, _ETCD, _CLUSTER_API = "real/kubernetes", "real/etcd", "real/clusterapi"
_VERSION = "k8s.io/component-base/version"

END_TO_END = "endtoend"
"""Kubernetes' own end-to-end tests of its API machinery."""
CLUSTER_API = {
    "capi-core": "core",
    "capi-kubeadm-bootstrap": "bootstrap/kubeadm",
    "capi-kubeadm-control-plane": "controlplane/kubeadm",
}
"""Cluster API's managers, and where their sources and manifests are in its module."""
CLUSTERCTL = "clusterctl"


@dataclass(frozen=True)
class Program:
    """A program, and what it costs to build it for the first time."""

    name: str
    tier: str
    """The first that needs it: `test`, `soak` or `kubeadm`."""
    build_s: int | None
    """Seconds of a first build on two cores, as the times of files in the cache show them. A hint: other work went on
    beside, and packages that programs share were compiled with the first of them. None where there is no hint."""
    module: str = ""
    """The folder of its Go module below `tests`."""
    package: str = "."


PROGRAMS: Final = (
    # upstream's components
    Program("kube-apiserver", "test", 280, _KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("etcd", "test", 94, _ETCD, "go.etcd.io/etcd/server/v3"),
    Program("kube-controller-manager", "test", 77, _KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kubectl", "test", 33, _KUBERNETES, "k8s.io/kubernetes/cmd/kubectl"),
    Program(END_TO_END, "test", 68, _KUBERNETES, f"./{END_TO_END}"),
    Program("capi-core", "test", 299, _CLUSTER_API, f"sigs.k8s.io/cluster-api/{CLUSTER_API['capi-core']}"),
    *(
        Program(name, "test", build_s, _CLUSTER_API, f"sigs.k8s.io/cluster-api/{CLUSTER_API[name]}")
        for name, build_s in (("capi-kubeadm-bootstrap", 9), ("capi-kubeadm-control-plane", 22))
    ),
    Program(CLUSTERCTL, "test", 26, _CLUSTER_API, "sigs.k8s.io/cluster-api/cmd/clusterctl"),
    # ours: oracles around upstream's packages, clients, and the checker of histories
    Program("linearizable", "test", 5, "go/linearizable"),
    Program("cel", "test", 18, "go/cel"),
    Program("capiconversion", "test", 9, "go/capiconversion"),
    Program("conditions", "test", 3, "go/conditions"),
    Program("gotemplate", "test", 3, "go/gotemplate"),
    Program("bootstrapdata", "test", 3, "go/bootstrapdata"),
    Program("topology", "test", 11, "go/topology"),
    Program("clientgo", "test", 8, "go/clientgo"),
    Program("controllerruntime", "test", 7, "go/controllerruntime"),
)
NODE_PROGRAMS: Final = (
    Program("kubeadm", "test", None),
    Program("kubelet", "test", 195),
    Program("kubectl", "test", 30),
    Program("kube-apiserver", "test", 136),
    Program("kube-controller-manager", "test", 47),
    Program("kube-scheduler", "test", 7),
    Program("kube-proxy", "test", 12),
    Program("coredns", "test", 488),
    Program("pause", "test", 1),
    Program("etcd", "test", 38),
    Program("kube-vip", "test", 124),
    # of the release before, from which a cluster is upgraded
    Program("kubeadm", "kubeadm", 766),
    Program("kubelet", "kubeadm", 949),
    Program("kubectl", "kubeadm", 77),
    Program("kube-apiserver", "kubeadm", 225),
    Program("kube-controller-manager", "kubeadm", 97),
    Program("kube-scheduler", "kubeadm", 14),
    Program("kube-proxy", "kubeadm", None),
    Program("coredns", "kubeadm", 323),
    Program("etcd", "kubeadm", 71),
)
"""What is in node images: built by the product's own `ironbell.image.kubernetes.golang`, of the release that the test
names."""
_BY_NAME: Final = {program.name: program for program in PROGRAMS}


def build_program(name: str) -> Path:
    """The program of this name; built if it is not in the cache.

    Raises:
        CannotBuild: with the reason.
        KeyError: it is not in the list.
    """
    program = _BY_NAME[name]
    module = _TESTS / program.module
    if program.package.startswith("k8s.io/kubernetes/"):
        return build(module, program.package, name=name, link=f"-s -w {_version_flags(module)}")
    return build(module, program.package, name=name)


def cluster_api_sources() -> Path:
    """The folder of Cluster API's Go module, where its manifests are.

    Raises:
        CannotBuild: it cannot be downloaded.
    """
    return module_folder(_TESTS / _CLUSTER_API, "sigs.k8s.io/cluster-api")


def _version_flags(module: Path) -> str:
    """What tells a component its version, which is otherwise set by upstream's own build."""
    found = re.search(r"^\s+k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    version, major, minor = found.groups()
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X {_VERSION}.{name}={value}" for name, value in facts.items())


def main(names: Iterable[str]) -> int:
    """Build programs one after the other, and say where each is."""
    for name in names or [one.name for one in PROGRAMS if one.module.startswith("real/")]:
        started = time.monotonic()
        try:
            path = build_program(name)
        except CannotBuild as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        print(f"{name:24} {time.monotonic() - started:6.1f} s  {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
