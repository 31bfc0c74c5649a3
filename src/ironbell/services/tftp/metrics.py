"""Counters of the TFTP server."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

TRANSFERS = Counter("ironbell_tftp_transfers", "Transfers that ended, by outcome.", ["outcome"])
REFUSED = Counter("ironbell_tftp_refused", "Requests answered with an error, by its code.", ["code"])
BYTES = Counter("ironbell_tftp_bytes", "Bytes of files sent in full.")
ACTIVE = Gauge("ironbell_tftp_active", "Transfers and requests being answered now.")
STRAYS = Counter("ironbell_tftp_strays", "Datagrams that are malformed or belong to no transfer.")
SOCKET_ERRORS = Counter("ironbell_tftp_socket_errors", "Failures to receive or send.", ["op"])
