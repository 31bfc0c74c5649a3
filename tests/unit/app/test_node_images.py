"""The folder of `--node-images`: complete images are published and listed, and nothing else ever is."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ironbell.app.site.checks import check_environment
from ironbell.app.site.metadata_url import image_source
from ironbell.app.site.node_images import NodeImageFolder
from ironbell.app.site.options import OptionsError, UpOptions, read_options
from ironbell.base.ownfolder import OwnFolder
from ironbell.contract.servers.node_images import INDEX, ImageSource, NodeImage, NodeImages, file_name, image_source_at
from ironbell.image.manifest import Manifest, describe, store
from ironbell.provisioner.effects import NodeImagesError, image_resolvers
from ironbell.provisioner.node_images import NodeImageIndex

NAME = file_name("v1.36.3")


def write(folder: Path, content: bytes, *, name: str = NAME, digest: str = "") -> Path:
    """An image as somebody copies it there, with its check sum."""
    path = folder / name
    path.write_bytes(content)
    (folder / f"{name}.sha256").write_text(f"{digest or hashlib.sha256(content).hexdigest()}  {name}\n")
    return path


def manifest(path: Path) -> None:
    """The manifest that `ironbell image build` writes last."""
    made = Manifest(
        kind="image", architecture="amd64", suite="s", inputs="", kernel="", unpacked_bytes=1,
        artefacts=[describe(path)], packages=[],
    )  # fmt: skip
    store(made, path.with_name(f"{path.name}.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[NodeImageFolder]:
    source = tmp_path / "images"
    source.mkdir()
    (tmp_path / "published").mkdir()
    with OwnFolder.open(tmp_path / "published") as target:
        yield NodeImageFolder(source, target)


def published(folder: NodeImageFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.target.path.iterdir() if path.name != INDEX}


def index(folder: NodeImageFolder) -> NodeImages:
    return msgspec.json.decode((folder.target.path / INDEX).read_bytes(), type=NodeImages)


def test_a_complete_image_is_published_and_listed(folder: NodeImageFolder) -> None:
    write(folder.source, b"image")
    found = folder.refresh()
    assert published(folder) == {NAME: b"image"}
    digest = hashlib.sha256(b"image").hexdigest()
    assert found.images == (NodeImage(file=NAME, sha256=digest, size_bytes=5),)
    assert found.versions() == ("v1.36.3",)
    assert index(folder) == found
    assert (folder.target.path / INDEX).stat().st_mode & 0o777 == 0o644


def test_an_empty_folder_has_an_index(folder: NodeImageFolder) -> None:
    assert folder.refresh() == NodeImages() == index(folder)


@pytest.mark.parametrize("has_manifest", [False, True])
def test_a_file_that_is_being_written_is_not_served(folder: NodeImageFolder, has_manifest: bool) -> None:
    path = write(folder.source, b"the whole image")
    if has_manifest:
        manifest(path)
    path.write_bytes(b"the who")
    (folder.source / f".{NAME}.new").write_bytes(b"the")
    assert folder.refresh().images == ()
    assert index(folder).unfinished == {NAME: f"its digest is not the one in {NAME}.sha256"}
    assert published(folder) == {}
    path.write_bytes(b"the whole image")
    assert len(folder.refresh().images) == 1
    assert published(folder) == {NAME: b"the whole image"}


@pytest.mark.parametrize(
    ("sum_", "why"),
    [(None, f"{NAME}.sha256 is missing beside it"), ("x", f"{NAME}.sha256 does not begin with a SHA-256 digest")],
)
def test_a_file_without_a_check_sum_is_not_served(folder: NodeImageFolder, sum_: str | None, why: str) -> None:
    write(folder.source, b"image")
    (folder.source / f"{NAME}.sha256").unlink()
    if sum_ is not None:
        (folder.source / f"{NAME}.sha256").write_text(sum_)
    assert folder.refresh().unfinished == {NAME: why}


def test_the_manifest_of_a_build_spares_reading_the_image(
    folder: NodeImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(write(folder.source, b"image"))
    monkeypatch.setattr("ironbell.app.site.node_images._digest", lambda _path: pytest.fail("the image was read"))
    assert len(folder.refresh().images) == 1


def test_any_other_file_is_read_once(folder: NodeImageFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder.source, b"image", digest="0" * 64)
    read: list[Path] = []
    monkeypatch.setattr("ironbell.app.site.node_images._digest", lambda path: read.append(path) or "1" * 64)
    for _ in range(3):
        folder.refresh()
    assert len(read) == 1


def test_a_file_that_cannot_be_read_or_published_keeps_no_other_from_being_served(
    folder: NodeImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable, full = file_name("v1.35.0"), file_name("v1.36.0")
    for name in (unreadable, full, NAME):
        write(folder.source, b"image", name=name)
    (folder.source / f"{unreadable}.sha256").unlink()
    (folder.source / f"{unreadable}.sha256").mkdir()

    place = OwnFolder.place

    def placed(target: OwnFolder, file: Path, name: str) -> None:
        if name == full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        place(target, file, name)

    monkeypatch.setattr(OwnFolder, "place", placed)
    assert [image.file for image in folder.refresh().images] == [NAME]
    assert published(folder) == {NAME: b"image"}
    assert index(folder).unfinished == {
        unreadable: f"{unreadable}.sha256 cannot be read: is a directory",
        full: "it cannot be published: no space left on device",
    }
    monkeypatch.undo()
    (folder.source / f"{unreadable}.sha256").rmdir()
    write(folder.source, b"image", name=unreadable)
    assert set(published(folder)) == {NAME}
    assert {image.file for image in folder.refresh().images} == {unreadable, full, NAME} == set(published(folder))


def test_what_was_readable_at_the_start_stays_published_without_the_right_to_read_it(
    folder: NodeImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder.source, b"image")
    found = folder.refresh()

    def refused(path: Path) -> NodeImage:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("ironbell.app.site.node_images._image_or_reason", refused)
    assert folder.refresh() == found == index(folder)
    other = file_name("v1.37.0")
    write(folder.source, b"another", name=other)
    assert folder.refresh().unfinished == {other: f"{other} cannot be read: permission denied"}
    assert published(folder) == {NAME: b"image"}


def test_an_image_that_is_replaced_is_never_listed_with_the_other_one_s_digest(folder: NodeImageFolder) -> None:
    path = write(folder.source, b"old image")
    folder.refresh()
    new = path.with_name(f".{NAME}.new")
    new.write_bytes(b"a new image")
    new.rename(path)
    assert folder.refresh().images == ()
    assert published(folder) == {}, "its check sum has not been written yet"
    write(folder.source, b"a new image")
    folder.refresh()
    assert published(folder) == {NAME: b"a new image"}
    assert index(folder).images[0].sha256 == hashlib.sha256(b"a new image").hexdigest()


def test_an_image_that_is_gone_is_served_no_more(folder: NodeImageFolder) -> None:
    write(folder.source, b"image").unlink()
    write(folder.source, b"other", name=file_name("v1.35.0"))
    folder.refresh()
    (folder.source / file_name("v1.35.0")).unlink()
    assert folder.refresh() == NodeImages() == index(folder)
    assert published(folder) == {}


def test_nothing_is_written_while_nothing_changes(folder: NodeImageFolder) -> None:
    write(folder.source, b"image")
    folder.refresh()
    before = (folder.target.path / INDEX).stat()
    folder.refresh()
    assert (folder.target.path / INDEX).stat() == before


async def test_controllers_read_the_index_from_the_folder(folder: NodeImageFolder) -> None:
    write(folder.source, b"image")
    found = folder.refresh()
    ask = image_resolvers(ImageSource(url="http://x/images", index=str(folder.target.path / INDEX)))[NodeImageIndex]
    assert await ask(NodeImageIndex()) == found
    (folder.target.path / INDEX).write_text("<html>")
    with pytest.raises(NodeImagesError, match="is not an index of images"):
        await ask(NodeImageIndex())
    (folder.target.path / INDEX).unlink()
    with pytest.raises(NodeImagesError, match=r"index.json: no such file or directory$"):
        await ask(NodeImageIndex())


async def test_controllers_elsewhere_read_the_index_over_http() -> None:
    found = NodeImages(images=(NodeImage(file=NAME, sha256="0" * 64),))

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(found))

    application = web.Application()
    application.add_routes([web.get(f"/images/{INDEX}", answer)])
    async with TestServer(application) as server:
        at = str(server.make_url("")).rstrip("/")
        assert await image_resolvers(image_source_at(f"{at}/images"))[NodeImageIndex](NodeImageIndex()) == found
        with pytest.raises(NodeImagesError, match=r"/other/index.json: the response was 404 Not Found$"):
            await image_resolvers(image_source_at(f"{at}/other"))[NodeImageIndex](NodeImageIndex())
    with pytest.raises(NodeImagesError, match=r"/images/index.json: connection refused$"):
        await image_resolvers(image_source_at(f"{at}/images"))[NodeImageIndex](NodeImageIndex())


def options(**given: object) -> UpOptions:
    return read_options(None, {"data_dir": "/x", **given})


def test_where_machines_find_images() -> None:
    given = {"advertise": "192.0.2.1", "interface": "eno2", "node_images": "/srv/images"}
    found = image_source(options(**given, metadata_url="http://192.0.2.9:50061"))
    assert found == ImageSource(
        url="http://192.0.2.1:7080/images", folder="/srv/images", index="/x/wire/artefacts/images/index.json"
    )
    assert image_source(options(advertise="192.0.2.1", interface="eno2")) == ImageSource()
    assert image_source(options(simulate=3)) == ImageSource(url="http://127.0.0.1:7080/images")
    assert image_source(options(simulate=3, node_images="/srv/images")).index
    assert image_source_at("") == ImageSource()
    assert image_source_at("http://192.0.2.1/images").index == "http://192.0.2.1/images/index.json"


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(OptionsError, match="the name 'images' belongs to --node-images"):
        options(simulate=1, node_images="/srv/images", artefacts={"images": "/srv"})
    with pytest.raises(OptionsError, match="node-images has no effect here"):
        options(node_images="/srv/images")


def test_a_folder_that_does_not_exist_is_an_error_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(OptionsError) as error:
        check_environment(options(simulate=1, node_images=str(tmp_path / "images")))
    assert str(error.value) == (
        f'--node-images: folder "{tmp_path}/images" does not exist; `ironbell image build --kernel server '
        f"--kubernetes VERSION --output {tmp_path}/images/` builds an image there"
    )
