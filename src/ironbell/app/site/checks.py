"""Checks of `ironbell up` before it starts anything: errors that stop it, and warnings about missing services."""

from __future__ import annotations

import socket
from pathlib import Path

from ironbell.app.site.metadata_url import interface_address
from ironbell.app.site.options import OptionsError, UpOptions

_KERNEL, _INITRAMFS = "vmlinuz-", "initramfs-"
"""Prefixes of the in-memory OS's file names; the machine's architecture follows, as in `uname -m`."""


def check_environment(options: UpOptions) -> None:
    """Check the options against this machine.

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
            f'--osie-dir: folder "{options.osie_dir}" does not exist; `ironbell osie build --output '
            f"{options.osie_dir}` "
            "builds the in-memory OS there"
        )
    if options.node_images and not Path(options.node_images).is_dir():
        raise OptionsError(
            f'--node-images: folder "{options.node_images}" does not exist; `ironbell image build --kernel server '
            f"--kubernetes VERSION --output {options.node_images}/` builds an image there"
        )


def warnings(options: UpOptions) -> tuple[str, ...]:
    """Warnings about services that servers will not get with these options, each with its remedy."""
    if not options.needs_root:
        return ()
    messages = [_without_osie(options)]
    if options.interface and not interface_address(options.interface):
        messages.append(
            f'Interface "{options.interface}" has no IPv4 address, so servers get no response from it. Add one in '
            "their "
            "subnet, such as `ip address add 192.0.2.1/24 dev "
            f"{options.interface}`."
        )
    return tuple(warning for warning in messages if warning)


def _without_osie(options: UpOptions) -> str:
    if options.osie_url:
        return ""
    if not options.osie_dir:
        return (
            "Servers get no in-memory OS, so none can be installed or wiped: neither --osie-dir nor --osie-url is set. "
            "Build it with `ironbell osie build --output DIR` and start again with --osie-dir DIR."
        )
    names = {path.name for path in Path(options.osie_dir).iterdir()}
    kernels = {name.removeprefix(_KERNEL) for name in names if name.startswith(_KERNEL)}
    if any(_INITRAMFS + machine in names for machine in kernels):
        return ""
    machine = min(kernels, default="x86_64")
    missing = [name for name in (_KERNEL + machine, _INITRAMFS + machine) if name not in names]
    return (
        f'Servers get no in-memory OS, so none can be installed or wiped: folder "{options.osie_dir}" has no '
        f"{' and no '.join(missing)}. Build it with `ironbell osie build --output {options.osie_dir}` and start again."
    )
