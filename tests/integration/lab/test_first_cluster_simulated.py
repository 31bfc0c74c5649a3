"""The clusters of docs/guide/first-cluster.md on simulated servers, and what `ironbell why` says of wrong steps."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fleet.servedimages import served_image
from support.ports import free_ports
from support.site.embeddedcluster import EmbeddedCluster
from support.site.readme import ROOT, blocks
from support.waiting import eventually

PAGE = ROOT / "docs" / "guide" / "first-cluster.md"
RELEASE, OLDER = "v1.36.3", "v1.35.4"
ROLES = {"control-plane": range(1, 5), "worker": range(5, 8), "spare": (8, 9), "no-secret": (10,)}
SERVERS = 10
WITHIN_S = 90.0
PLAIN, BY_CLASS = "cluster-on-servers.yaml", "clusterclass-on-servers.yaml"


class Page:
    """A user with the page's second terminal."""

    def __init__(self, site: EmbeddedCluster, folder: Path, port: int) -> None:
        self.images, self.folder, self.port = folder / "images", folder, port
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {"HOME": str(folder), "PATH": path, "KUBECONFIG": str(site.kubeconfig)}

    def run(self, command: str, *, status: int | None = 0) -> str:
        """What a shell prints."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert status is None or done.returncode == status, done.stderr[-3000:]
        return done.stdout + done.stderr

    def create(self, name: str, endpoint: str, *, example: str = PLAIN, role: str = "", **values: str) -> None:
        """The page's command that creates a cluster, with this one's values, as far as applying it."""
        (command,) = (line for block in blocks(PAGE) for line in block if f"/{example}" in line)
        changes = {
            "create plant": f"create {name}",
            "192.168.20.5": endpoint,
            "--wait": "",
            **{word: values[word] for word in values if word.startswith("--")},
        }
        for old, new in changes.items():
            assert old in command, old
            command = command.replace(old, new)
        if role:
            text = (ROOT / "docs" / "examples" / example).read_text().replace("role: control-plane", f"role: {role}")
            (self.folder / f"{name}.yaml").write_text(text)
            command = command.replace(f"docs/examples/{example}", str(self.folder / f"{name}.yaml"))
        self.run(re.sub(" +", " ", command))

    def why(self, target: str) -> str:
        """The first line."""
        return self.run(f"ironbell why {target}", status=None).partition("\n")[0]

    def until_why(self, target: str, *words: str) -> str:
        """The first line, once it has these words."""
        line = ""

        def said() -> bool:
            nonlocal line
            line = self.why(target)
            return all(word in line for word in words)

        try:
            eventually(said, within_s=WITHIN_S)
        finally:
            print(f"{target}: {line}")
        return line


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder, ports = tmp_path_factory.mktemp("page"), free_ports(2)
    (folder / "images").mkdir()
    served_image(folder / "images", OLDER)
    options = ("--simulate", str(SERVERS), "--node-images", str(folder / "images"))
    served = ("--http-port", str(ports[0]), "--grpc-port", str(ports[1]), "--workflow-http-port", "0")
    site = EmbeddedCluster(folder, (*options, *served))
    try:
        site.start()
        page = Page(site, folder, ports[0])
        for role, numbers in ROLES.items():
            page.run(f"kubectl label hardware {' '.join(f'sim-{number:04}' for number in numbers)} role={role}")
        (folder / "pod-network.yaml").write_text((ROOT / "docs" / "examples" / "pod-network.yaml").read_text())
        page.run(f"kubectl create configmap pod-network --from-file={folder}/pod-network.yaml")
        yield page
    finally:
        site.stop()


def test_the_class_form_is_installed_once_its_image_is_there(page: Page) -> None:
    page.create("plant", "127.99.84.5", example=BY_CLASS)
    line = page.until_why("plant", "is missing")
    assert f'Image "debian-kubernetes-{RELEASE}.raw.zst" is missing' in line
    assert f'folder "{page.images}" has images for {OLDER}' in line
    assert f"ironbell image build --kernel server --kubernetes {RELEASE} --output {page.images}/" in line
    assert page.run("kubectl get workflows,templates -o name") == "", "nothing is done to a server before"
    name = served_image(page.images, RELEASE)
    page.run("ironbell cluster describe plant --wait")
    assert re.search(r"plant +3/3 +2/2 +v1.36.3 +True", page.run("ironbell cluster list"))
    template = json.loads(page.run("kubectl get templates -o json"))["items"][0]["spec"]["data"]
    assert f"IMG_URL: http://127.0.0.1:{page.port}/images/{name}\n" in template
    assert f"IMG_CHECKSUM: sha256:{hashlib.sha256(RELEASE.encode()).hexdigest()}\n" in template
    checks = json.loads(page.run("kubectl get machinehealthchecks -o json"))["items"]
    assert len(checks) == 2, "of the control plane and of the workers"


def test_images_are_served_in_parts_with_a_tag_and_an_index(page: Page) -> None:
    url = f"http://127.0.0.1:{page.port}/images/debian-kubernetes-{OLDER}.raw.zst"
    head = urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=5)
    assert (head.headers["Content-Length"], head.headers["Accept-Ranges"]) == (str(len(OLDER)), "bytes")
    part = {"Range": "bytes=1-3", "If-Range": head.headers["ETag"]}
    with urllib.request.urlopen(urllib.request.Request(url, headers=part), timeout=5) as answer:
        assert (answer.status, answer.read()) == (206, OLDER.encode()[1:4])
    with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/images/index.json", timeout=5) as answer:
        assert f"debian-kubernetes-{OLDER}.raw.zst" in answer.read().decode()


def test_what_can_go_wrong_on_the_page_is_named_with_its_remedy(page: Page) -> None:
    """Each with its cause, then what the user can do."""
    served_image(page.images, RELEASE)
    page.run("kubectl delete secret sim-0010-bmc")
    one = {"--control-planes 3": "--control-planes 1", "--workers 2": "--workers 0 --set CONTROL_PLANE_SURGE=1"}
    page.create(
        "version",
        "127.99.84.6",
        role="spare",
        **one,
        **{"--kubernetes-version v1.36.3": "--kubernetes-version v1.99.0"},
    )
    page.create("secret", "127.99.84.8", role="no-secret", **one)
    page.create("twice", "127.99.84.8", **one)
    line = page.until_why("version", 'Image "debian-kubernetes-v1.99.0.raw.zst" is missing', "Build it with")
    assert f"has images for {OLDER}, {RELEASE}" in line
    page.until_why("twice", "127.99.84.8:6443", "belongs to Cluster default/secret", "Set another")
    page.until_why("secret", "secret default/sim-0010-bmc", "does not exist; create it", "Correct what keeps")
