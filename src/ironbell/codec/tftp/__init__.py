"""TFTP without I/O: messages, the server's engine, the client's download.

`Engine` serves many clients, `Download` fetches one file; both take datagrams and the time as arguments and give out
datagrams. Options: blksize, tsize, timeout, windowsize.

Source: RFC 1350, 2347, 2348, 2349, 7440.
"""

from ironbell.codec.tftp.download import Download, DownloadError
from ironbell.codec.tftp.engine import Content, Engine, Finished, Rejected, Requested, Stray
from ironbell.codec.tftp.messages import ErrorCode, Opcode, Request, TftpDecodeError, decode
from ironbell.codec.tftp.options import Agreed, Limits
from ironbell.codec.tftp.sender import Outcome, Retransmission

__all__ = [
    "Agreed",
    "Content",
    "Download",
    "DownloadError",
    "Engine",
    "ErrorCode",
    "Finished",
    "Limits",
    "Opcode",
    "Outcome",
    "Rejected",
    "Request",
    "Requested",
    "Retransmission",
    "Stray",
    "TftpDecodeError",
    "decode",
]
