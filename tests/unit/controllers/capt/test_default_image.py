"""Machines whose manifests name no image get one that the site serves, or say which is missing and how to get it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.imagelookup import DEFAULT_BASE_REGISTRY, DEFAULT_FORMAT
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.base.errors import IronbellError
from ironbell.contract.servers.node_images import NO_IMAGES, ImageSource, NodeImage, NodeImages
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.node_images import NodeImageIndex
from support.servers.captscene import MACHINES, Engine, add_machine, get, hardware, said, scene

SERVED = ImageSource(
    url="http://192.0.2.1:7080/images", folder="/srv/images", index="/var/lib/ironbell/wire/artefacts/images/index.json"
)
SITE: TinkerbellMachineReconciler = replace(MACHINES, images=SERVED)
NOTHING = replace(MACHINES, images=NO_IMAGES)
FILE, DIGEST = "debian-kubernetes-v1.35.2.raw.zst", "ab" * 32
BUILD = "ironbell image build --kernel server --kubernetes v1.35.2 --output /srv/images/"
FILLED_IN = {
    "imageLookupFormat": DEFAULT_FORMAT,
    "imageLookupBaseRegistry": DEFAULT_BASE_REGISTRY,
    "imageLookupOSDistro": "ubuntu",
    "imageLookupOSVersion": "20.04",
}
"""What upstream's webhook and CRD write into every TinkerbellCluster."""


def image(file: str = FILE) -> NodeImage:
    return NodeImage(file=file, sha256=DIGEST)


def site(images: NodeImages | IronbellError, **infrastructure: Any) -> World:
    """A machine in a world whose folder of images is this."""
    world = scene(Engine(""), infrastructure=infrastructure)
    world.outside = {"images": images, "looks": 0}
    world.resolvers = {**world.resolvers, NodeImageIndex: _look}
    add_machine(world)
    return world


def _look(world: World, _asked: NodeImageIndex) -> NodeImages:
    world.outside["looks"] += 1
    found = world.outside["images"]
    if isinstance(found, IronbellError):
        raise found
    assert isinstance(found, NodeImages)
    return found


def template(world: World) -> str:
    return str(world.require(TEMPLATE, "default", "m").spec.data)


@pytest.mark.parametrize("infrastructure", [{}, FILLED_IN, {**FILLED_IN, "imageLookupOSDistro": "Ubuntu"}])
def test_an_image_that_the_site_serves_is_installed_and_checked(infrastructure: dict[str, Any]) -> None:
    world = site(NodeImages(images=(image(),)), **infrastructure)
    world.settle(SITE)
    assert f"IMG_URL: {SERVED.url}/{FILE}\n" in template(world)
    assert f"IMG_CHECKSUM: sha256:{DIGEST}\n" in template(world)
    assert said(get(world))[1] == "Installing"


@pytest.mark.parametrize("infrastructure", [{}, FILLED_IN])
def test_a_missing_image_is_named_with_the_command_that_builds_it(infrastructure: dict[str, Any]) -> None:
    there = NodeImages(images=(image("debian-kubernetes-v1.34.1.raw.zst"), image("debian-kubernetes-v1.33.0.raw.zst")))
    world = site(there, **infrastructure)
    world.settle(SITE)
    message = (
        f'Image "{FILE}" is missing: folder "/srv/images" has images for v1.33.0, v1.34.1. Build it with `{BUILD}`.'
    )
    assert said(get(world)) == ("False", "NodeImageMissing", message)
    assert get(world).status.instance_state == "Waiting"
    assert (world.list(TEMPLATE), world.list(WORKFLOW)) == ([], []), "nothing is done to the server"


def test_an_installation_begins_by_itself_when_the_image_appears() -> None:
    world = site(NodeImages())
    world.settle(SITE)
    message = f'Image "{FILE}" is missing: folder "/srv/images" has no image of a node. Build it with `{BUILD}`.'
    assert said(get(world))[2] == message
    world.outside["images"] = NodeImages(images=(image(),))
    world.clock.advance(21)
    world.settle(SITE)
    assert said(get(world))[1] == "Installing"
    looks = world.outside["looks"]
    world.clock.advance(600)
    world.settle(SITE)
    assert world.outside["looks"] == looks, "an installation that goes on needs no look"


def test_however_many_machines_wait_there_is_one_look() -> None:
    world = scene(Engine(""), servers=5)
    world.outside = {"images": NodeImages(), "looks": 0}
    world.resolvers = {**world.resolvers, NodeImageIndex: _look}
    for number in range(5):
        add_machine(world, f"m{number}")
    world.settle(SITE)
    assert [said(obj)[1] for obj in world.list(TINKERBELL_MACHINE)] == ["NodeImageMissing"] * 5
    assert world.outside["looks"] == 1


def test_a_file_that_is_not_complete_is_reported_with_the_reason() -> None:
    world = site(NodeImages(unfinished={FILE: f"there is no {FILE}.sha256 beside it"}))
    world.settle(SITE)
    assert said(get(world))[2] == (
        f'Image "{FILE}" in folder "/srv/images" is not served: there is no {FILE}.sha256 beside it. '
        f"Complete it, or build it with `{BUILD}`."
    )


def test_an_index_that_cannot_be_read_is_reported() -> None:
    world = site(IronbellError("http://192.0.2.1:7080/images/index.json: 404, message='Not Found'"))
    world.settle(SITE)
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "NodeImagesUnknown")
    assert message.startswith(
        "Cannot read which images of nodes are served: http://192.0.2.1:7080/images/index.json: 404"
    )


@pytest.mark.parametrize("infrastructure", [{}, FILLED_IN])
def test_a_site_without_images_says_so_before_anything_is_done(infrastructure: dict[str, Any]) -> None:
    world = scene(Engine(""), infrastructure=infrastructure)
    add_machine(world)
    world.settle(NOTHING)
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "NoNodeImages")
    assert message == (
        "No image is named for this Machine: imageLookupFormat is not set, and this site serves no images of nodes. "
        f"Build one with `{BUILD}` and start Ironbell with --node-images /srv/images, "
        "or set spec.imageLookupFormat of the TinkerbellCluster."
    )
    assert (world.list(TEMPLATE), world.list(WORKFLOW)) == ([], [])


def test_images_for_another_architecture_are_not_promised() -> None:
    world = site(NodeImages(images=(image(),)))
    interfaces = [{"dhcp": {"mac": "02:00:00:00:00:01", "arch": "aarch64", "ip": {"address": "192.0.2.9"}}}]
    world.change(HARDWARE, hardware(world), {"spec": {"interfaces": interfaces}})
    world.settle(SITE)
    assert said(get(world))[2] == (
        "The server's architecture is arm64, and images of nodes are built for amd64 only. "
        "Name an image for it in spec.imageLookupFormat of the TinkerbellCluster."
    )


@pytest.mark.parametrize(
    ("infrastructure", "machine", "url"),
    [
        ({**FILLED_IN, "imageLookupFormat": "http://x/{{.KubernetesVersion}}.raw.gz"}, {}, "http://x/v1.35.2.raw.gz"),
        ({**FILLED_IN, "imageLookupBaseRegistry": "r.example/a"}, {}, "r.example/a/ubuntu-2004:v1.35.2.gz"),
        ({**FILLED_IN, "imageLookupOSVersion": "22.04"}, {}, f"{DEFAULT_BASE_REGISTRY}/ubuntu-2204:v1.35.2.gz"),
        (
            {**FILLED_IN, "imageLookupOSDistro": "flatcar", "imageLookupOSVersion": ""},
            {},
            f"{DEFAULT_BASE_REGISTRY}/flatcar-:v1.35.2.gz",
        ),
        (FILLED_IN, {"imageLookupFormat": DEFAULT_FORMAT}, f"{DEFAULT_BASE_REGISTRY}/ubuntu-2004:v1.35.2.gz"),
        (FILLED_IN, {"imageLookupOSVersion": "20.04"}, f"{DEFAULT_BASE_REGISTRY}/ubuntu-2004:v1.35.2.gz"),
    ],
)
def test_what_a_manifest_names_is_as_upstream_has_it(
    infrastructure: dict[str, Any], machine: dict[str, Any], url: str
) -> None:
    for reconciler in (SITE, NOTHING):
        world = scene(Engine(""), infrastructure=infrastructure)
        add_machine(world, **machine)
        world.settle(reconciler)
        assert f"IMG_URL: {url}\n" in template(world)
        assert "IMG_CHECKSUM" not in template(world)


def test_it_may_be_killed_anywhere_while_it_looks() -> None:
    crash_check(SITE, site(NodeImages(images=(image(),))), horizon_s=30)
