"""Options that hold text: host name (12), domain (15), message (56), vendor class (60), 66 and 67.

Clients put NUL bytes at the end and characters of any encoding inside; both are read without complaint, since these
texts are compared and logged, never trusted.

Source: RFC 2132, sections 3.14, 3.17, 9.4, 9.5, 9.9 and 9.13.
"""

from __future__ import annotations

from ironbell.codec.dhcp.numbers import Option
from ironbell.codec.dhcp.packet import Packet


def text(packet: Packet, code: int) -> str:
    """An option as text, without trailing NULs; empty when it is absent."""
    return packet.options.get(code, b"").rstrip(b"\0").decode("utf-8", "backslashreplace")


def boot_file(packet: Packet) -> str:
    """The boot file that a reply names: option 67 where given, else the header's field."""
    return text(packet, Option.BOOT_FILE_NAME) or packet.file.decode("utf-8", "backslashreplace")
