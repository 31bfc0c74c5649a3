"""TFTP toward machines: boot files by RFC 1350 with blksize, tsize, timeout and windowsize.

`open_tftp_socket` opens (with privileges), `TftpServer` serves what its `fetch` gives.
"""

from ironbell.services.tftp.server import Fetch, TftpServer, TftpSettings
from ironbell.services.tftp.sockets import TftpSocketError, open_tftp_socket

__all__ = ["Fetch", "TftpServer", "TftpSettings", "TftpSocketError", "open_tftp_socket"]
