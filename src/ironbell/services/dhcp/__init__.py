"""DHCP toward machines: reservation mode, proxy modes, netboot options. IPv4.

`open_dhcp_socket` opens (with privileges), `DhcpServer` serves, `decide` decides: a pure function of the message, the
Hardware and the settings. `probe_for_servers` finds other servers before addresses are handed out.

    settings  modes, addresses, binaries        subjects     MAC to compiled Hardware
    decision  what to answer (with `reserve`,   destination  where a reply goes
              `proxy`, `bootfile`, `client`)    server       the socket's loop
"""

from ironbell.services.dhcp.decision import decide
from ironbell.services.dhcp.probe import probe_for_servers
from ironbell.services.dhcp.problems import Problem
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
