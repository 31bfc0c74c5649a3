"""Addresses of the metadata service and of images for machines, as far as they are known before anything is served."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path

from ironbell.app.site.options import UpOptions
from ironbell.app.wire.config import ARTEFACTS_FOLDER, WIRE_FOLDER
from ironbell.base.errors import IronbellError
from ironbell.contract.servers.boot_token import metadata_base
from ironbell.contract.servers.node_images import FOLDER, INDEX, NO_IMAGES, ImageSource

SIMULATION_ADDRESS = "127.0.0.1"
"""Address of this host for simulated servers, each of which has its own loopback address."""
_SIOCGIFADDR = 0x8915
_IFREQ_SIZE = 256
_ADDRESS_AT = 20
_NAME_SIZE = 15


def metadata_url(options: UpOptions) -> str:
    """The user's URL, or the one at the advertised address, the lab's, or that of the served interface; with strict
    identity, the path below it that needs a token.

    It is empty if none is known: machines then need templates of their own.
    """
    return metadata_base(_url(options), options.identity)


def image_source(options: UpOptions) -> ImageSource:
    """Source of the images that no manifest names. Simulated servers fetch none, so there is one for every version."""
    folder = Path(options.node_images).absolute() if options.node_images else None
    url = f"{_served_at(options) or options.metadata_url.rstrip('/')}/{FOLDER}"
    if folder is not None:
        index = options.folder.absolute() / WIRE_FOLDER / ARTEFACTS_FOLDER / FOLDER / INDEX
        return ImageSource(url=url, folder=str(folder), index=str(index))
    return ImageSource(url=url) if options.simulated_servers else NO_IMAGES


def _url(options: UpOptions) -> str:
    return options.metadata_url.rstrip("/") or _served_at(options)


def _served_at(options: UpOptions) -> str:
    address = site_address(options)
    return f"http://{address}:{options.http_port}" if address else ""


def site_address(options: UpOptions) -> str:
    """Address of a site's servers for machines; empty if it is unknown."""
    return (
        options.advertise
        or _lab_address(options)
        or interface_address(options.interface)
        or (SIMULATION_ADDRESS if options.simulated_servers else "")
    )


def _lab_address(options: UpOptions) -> str:
    if not options.lab:
        return ""
    from ironbell.lab.description import read

    try:
        return read(Path(options.lab)).network.gateway
    except (IronbellError, OSError):
        # The lab's own process reports problems of its file.
        return ""


def interface_address(name: str) -> str:
    """The first IPv4 address of an interface (netdevice(7)); empty if it has none, or no interface is named."""
    if not name:
        return ""
    request = struct.pack(f"{_IFREQ_SIZE}s", name.encode()[:_NAME_SIZE])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return ""
    return socket.inet_ntoa(answer[_ADDRESS_AT : _ADDRESS_AT + 4])
