"""Boot files for machines over TFTP: RFC 1350 with blksize, tsize, timeout and windowsize.

`open_tftp_socket` opens the socket, which needs privileges; `TftpServer` serves the files that its `fetch` returns.
"""

from ironbell.services.tftp.server import Fetch, TftpServer, TftpSettings
from ironbell.services.tftp.sockets import TftpSocketError, open_tftp_socket

__all__ = ["Fetch", "TftpServer", "TftpSettings", "TftpSocketError", "open_tftp_socket"]
