"""What a node image has so that upstream's cluster template works on it unchanged: kube-vip and its way to the API."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ironbell.image import kubernetes
from ironbell.image.kubernetes import golang
from ironbell.image.kubernetes.release import parse_release
from ironbell.image.kubernetes.source import KUBE_VIP_IN_TEMPLATE, Folder, GoModules, Packages, kube_vip_program
from support.programs.upstream import both

OVERLAY = Path(kubernetes.__file__).parent / "files/overlay/usr"
PROGRAM = OVERLAY / "lib/ironbell/kube-vip-kubeconfig"
MANIFEST = """\
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: kube-vip
    volumeMounts:
    - mountPath: /etc/kubernetes/admin.conf
      name: kubeconfig
  volumes:
  - hostPath:
      path: /etc/kubernetes/admin.conf
    name: kubeconfig
"""
CTR = """\
#!/bin/sh
case "$*" in
    "images list -q" | "-n k8s.io images list -q") echo known/image:1; echo pulled/image:1 ;;
    *"images list -q") ;;
    *) printf '%s\n' "$*"; exit 7 ;;
esac
"""


@both
def test_it_is_the_image_that_upstreams_template_names(source: Callable[[str], Path]) -> None:
    text = source("capt/cluster-template.yaml").read_text()
    assert text.count(KUBE_VIP_IN_TEMPLATE) == text.count("ghcr.io/kube-vip/kube-vip:") > 0


def test_a_build_from_go_modules_brings_it_unasked_unless_another_version_is_named(tmp_path: Path) -> None:
    other = "ghcr.io/kube-vip/kube-vip:v0.9.1"
    assert GoModules(tmp_path).default_images(["registry.k8s.io/pause:3.10.1"]) == (KUBE_VIP_IN_TEMPLATE,)
    assert GoModules(tmp_path).default_images([other]) == ()
    assert Folder(tmp_path).default_images([]) == Packages("deb x").default_images([]) == ()


def test_its_program_knows_its_version_and_its_sums() -> None:
    """The manifest that it writes names the image by that version."""
    program = kube_vip_program("v0.9.2")
    assert golang.link_flags(program) == "-s -w -X main.Version=v0.9.2"
    assert [line.split()[1] for line in program.sums] == ["v0.9.2", "v0.9.2/go.mod"]
    assert kube_vip_program("v0.9.1").sums == ()
    assert golang.kubernetes_program("kubeadm", parse_release("v1.36.3")).sums == ()


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        ("images pull known/image:1", False),
        ("image pull --platform linux/amd64 known/image:1", False),
        ("-n k8s.io images pull known/image:1", False),
        ("-n elsewhere images pull known/image:1", True),
        ("images pull pulled/image:1", True),
        ("images pull other/image:1", True),
        ("images list -q known/image:1", True),
        ("run --rm --net-host known/image:1 name /kube-vip", True),
    ],
)
def test_a_pull_finds_what_came_with_the_system(tmp_path: Path, words: str, passed_on: bool) -> None:
    ctr, brought = tmp_path / "ctr", tmp_path / "brought"
    ctr.write_text(CTR)
    ctr.chmod(0o755)
    brought.write_text("known/image:1\n")
    environment = {**os.environ, "IRONBELL_CTR": str(ctr), "IRONBELL_BROUGHT": str(brought)}
    command = ["sh", str(OVERLAY / "local/bin/ctr"), *words.split()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    expected = (7, f"{words}\n") if passed_on else (0, "known/image:1: came with this system\n")
    assert (done.returncode, done.stdout) == expected


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """/etc/kubernetes of a machine, with the manifest that the template's command writes."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/kube-vip.yaml").write_text(MANIFEST)
    return tmp_path


def carry_out(node: Path, step: str, *, init_runs: bool) -> str:
    """One step, where processes are as told; gives the manifest."""
    tools = node / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("pgrep", "pidwait"):
        (tools / name).write_text(f"#!/bin/sh\nexit {0 if init_runs else 1}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "IRONBELL_KUBERNETES": str(node)}
    subprocess.run(["sh", str(PROGRAM), step], env=environment, check=True)
    manifest = node / "manifests/kube-vip.yaml"
    assert [path.name for path in manifest.parent.iterdir()] == [manifest.name], "the kubelet would read others"
    return manifest.read_text()


def test_while_kubeadm_makes_a_control_plane_it_has_the_kubeconfig_that_may_do_all(node: Path) -> None:
    begun = carry_out(node, "begin", init_runs=True)
    assert "      path: /etc/kubernetes/kube-vip.conf\n" in begun
    assert "mountPath: /etc/kubernetes/admin.conf\n" in begun, "kube-vip looks there"
    assert (node / "kube-vip.conf").readlink() == Path("super-admin.conf")
    assert carry_out(node, "begin", init_runs=True) == begun, "the kubelet is started more than once"
    assert (node / "manifests/kube-vip.yaml").stat().st_mode & 0o777 == 0o600
    assert carry_out(node, "end", init_runs=True) == begun, "the kubelet would start another pod"
    assert (node / "kube-vip.conf").readlink() == Path("admin.conf")


def test_after_a_power_cut_the_next_start_takes_it_back(node: Path) -> None:
    carry_out(node, "begin", init_runs=True)
    carry_out(node, "begin", init_runs=False)
    carry_out(node, "end", init_runs=False)
    assert (node / "kube-vip.conf").readlink() == Path("admin.conf")


def test_on_machines_that_join_nothing_is_changed(node: Path) -> None:
    assert carry_out(node, "begin", init_runs=False) == carry_out(node, "end", init_runs=False) == MANIFEST
    assert not (node / "kube-vip.conf").is_symlink()


def test_a_template_that_chooses_the_kubeconfig_itself_is_left_alone(node: Path) -> None:
    chosen = MANIFEST.replace("path: /etc/kubernetes/admin.conf", "path: /etc/kubernetes/super-admin.conf")
    (node / "manifests/kube-vip.yaml").write_text(chosen)
    assert carry_out(node, "begin", init_runs=True) == carry_out(node, "end", init_runs=True) == chosen


@pytest.mark.parametrize(
    ("command", "is_init"),
    [
        ("kubeadm init --config /run/kubeadm/kubeadm.yaml", True),
        ("/run/namespace-machine/kubeadm init", True),
        ("kubeadm join", False),
        ("/bin/sh -c kubeadm init", False),
    ],
)
def test_kubeadm_init_is_told_by_its_command_line(command: str, is_init: bool) -> None:
    pattern = next(line for line in PROGRAM.read_text().splitlines() if line.startswith("init=")).split("'")[1]
    found = subprocess.run(["grep", "-Eq", pattern], input=command, text=True, check=False)
    assert (found.returncode == 0) is is_init
