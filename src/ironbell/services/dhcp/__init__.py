"""DHCP for machines over IPv4: reservation mode, proxy modes, netboot options.

`open_dhcp_socket` opens a socket (with privileges), and `DhcpServer` serves it. `decide` is a pure function of the
message, the Hardware and the settings. `probe_for_servers` finds other servers before addresses are assigned.

    settings  modes, addresses, binaries          subjects  compiled Hardware by MAC
    decision  the reply to a message (with        sockets   sockets, destinations of replies
              `reserve`, `proxy`, `bootfile`)     server    the socket's loop
"""

from ironbell.services.dhcp.answers import Problem
from ironbell.services.dhcp.decision import decide
from ironbell.services.dhcp.probe import probe_for_servers
from ironbell.services.dhcp.server import DhcpServer
from ironbell.services.dhcp.settings import DhcpSettings, MacFormat, Mode, PlainIpxe
from ironbell.services.dhcp.sockets import SocketError, open_dhcp_socket

__all__ = [
    "DhcpServer",
    "DhcpSettings",
    "MacFormat",
    "Mode",
    "PlainIpxe",
    "Problem",
    "SocketError",
    "decide",
    "open_dhcp_socket",
    "probe_for_servers",
]
