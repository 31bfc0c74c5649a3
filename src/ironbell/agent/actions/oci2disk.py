"""oci2disk: write a disk image from an OCI registry to a disk.

`IMG_URL` is `registry/repository:tag` (or `@sha256:…`), `DEST_DISK` the disk. The image is the one layer of the
artifact, compressed or not, as `oras push` creates it. `REGISTRY_USERNAME` and `REGISTRY_PASSWORD` where the registry
needs them, `SKIP_VERIFY=true` for one whose certificate no known authority signed, `PLAIN_HTTP=true` (ours) for one
without TLS. Everything else is as for image2disk.

The manifest and the layer are compared with their digests before the disk's first blocks are written.

Source: tinkerbell/actions: oci2disk.
"""

from __future__ import annotations

from ironbell.agent.actions import image2disk
from ironbell.agent.actions.context import Context
from ironbell.agent.actions.streams import checksum
from ironbell.agent.actions.streams.download import Download
from ironbell.agent.actions.streams.registry import Registry, parse

_TITLE = "org.opencontainers.image.title"


def run(context: Context) -> None:
    """Write the image."""
    reference = parse(context.required("IMG_URL"))
    registry = Registry(
        reference,
        user=context.text("REGISTRY_USERNAME"),
        password=context.text("REGISTRY_PASSWORD"),
        plain_http=context.flag("PLAIN_HTTP"),
        skip_verify=context.flag("SKIP_VERIFY"),
    )
    layer = registry.layer()
    title = layer.annotations.get(_TITLE, "")
    context.log(f"{reference} is {layer.digest}{f' ({title})' if title else ''}")

    def source() -> image2disk.Source:
        download = Download(
            registry.blob(layer),
            log=context.log,
            patience=image2disk.patience(context),
            authorize=registry.authorization,
            skip_verify=context.flag("SKIP_VERIFY"),
        )
        return image2disk.Source(str(reference), download, checksum.Checksum("the manifest", layer.digest))

    image2disk.write_from(context, source)
