"""DHCPv4 messages, sans I/O: `decode(bytes) -> Packet`, `encode(Packet) -> bytes`, typed views of options.

One module per option family: `addresses`, `integers`, `text`, `routes` (121), `search` (119), `relay` (82),
`user_class` (77), `pxe` (43, 93, 94, 97). `packet` holds the message, `tlv` the options' bytes, `summary` the log line.
A decoder raises nothing but `DecodeError`, whatever the bytes are.

Source: RFC 2131, RFC 2132, RFC 3396; structure after insomniacslk/dhcp: dhcpv4.
"""

from ironbell.codec.dhcp.errors import DecodeError, DhcpError, EncodeError, OptionError
from ironbell.codec.dhcp.numbers import MessageType, Op, Option
from ironbell.codec.dhcp.packet import Packet, decode, encode, reply_to
from ironbell.codec.dhcp.summary import summary

__all__ = [
    "DecodeError",
    "DhcpError",
    "EncodeError",
    "MessageType",
    "Op",
    "Option",
    "OptionError",
    "Packet",
    "decode",
    "encode",
    "reply_to",
    "summary",
]
