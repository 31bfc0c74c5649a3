"""What `ironbell up` looks at before it starts anything: mistakes that end it, and what servers will not get.

Source: Linux netdevice(7).
"""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path

from ironbell.app.up_options import OptionsError, UpOptions

OSIE_FILES = ("vmlinuz-x86_64", "initramfs-x86_64")
_SIOCGIFADDR = 0x8915
_INTERFACE_REQUEST = struct.Struct("16s24x")


def check_environment(options: UpOptions) -> None:
    """Compare the options with this machine.

    Raises:
        OptionsError: the interface, or the folder of the in-memory OS or of images, does not exist.
    """
    known = [name for _, name in socket.if_nameindex()]
    if options.interface and options.interface not in known:
        raise OptionsError(
            f'--interface: this machine has no interface "{options.interface}"; it has: {", ".join(sorted(known))}'
        )
    if options.osie_dir and not Path(options.osie_dir).is_dir():
        raise OptionsError(
            f'--osie-dir: there is no folder "{options.osie_dir}"; `ironbell osie build --output {options.osie_dir}` '
            "builds the in-memory OS there"
        )
    if options.node_images and not Path(options.node_images).is_dir():
        raise OptionsError(
            f'--node-images: there is no folder "{options.node_images}"; `ironbell image build --kernel server '
            f"--kubernetes VERSION --output {options.node_images}/` builds an image there"
        )


def warnings(options: UpOptions) -> tuple[str, ...]:
    """What servers will not get from a site that is started with these options, each with its remedy."""
    if not options.needs_root:
        return ()
    found = [_without_osie(options)]
    if options.interface and not _has_address(options.interface):
        found.append(
            f'Interface "{options.interface}" has no IPv4 address, so servers get no answer from it. Give it one in '
            "their subnet, such as `ip address add 192.0.2.1/24 dev "
            f"{options.interface}`."
        )
    return tuple(warning for warning in found if warning)


def _without_osie(options: UpOptions) -> str:
    if options.osie_url:
        return ""
    if not options.osie_dir:
        return (
            "Servers get no in-memory OS, so none can be installed or wiped: neither --osie-dir nor --osie-url is "
            "given. Build it with `ironbell osie build --output DIR` and start again with --osie-dir DIR."
        )
    missing = [name for name in OSIE_FILES if not (Path(options.osie_dir) / name).is_file()]
    if not missing:
        return ""
    return (
        f'Servers get no in-memory OS, so none can be installed or wiped: folder "{options.osie_dir}" has no '
        f"{' and no '.join(missing)}. Build it with `ironbell osie build --output {options.osie_dir}` and start again."
    )


def _has_address(interface: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, _INTERFACE_REQUEST.pack(interface.encode()))
        except OSError:
            return False
    return True
