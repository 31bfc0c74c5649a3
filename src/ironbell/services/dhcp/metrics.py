"""Counters of the DHCP server. `dhcp_total` has upstream's name and labels."""

from __future__ import annotations

from prometheus_client import Counter

MESSAGES = Counter("dhcp", "DHCP messages received and sent.", ["op", "type"])
IGNORED = Counter("ironbell_dhcp_ignored", "DHCP messages that got no answer, by reason.", ["reason"])
MALFORMED = Counter("ironbell_dhcp_malformed", "Datagrams on the DHCP port that are no DHCP message.")
FAILURES = Counter("ironbell_dhcp_failures", "Messages whose handling failed unexpectedly.")
SOCKET_ERRORS = Counter("ironbell_dhcp_socket_errors", "Failures to receive or send.", ["op"])
PROBLEMS = Counter("ironbell_dhcp_problems", "Findings about machines that are served wrongly or not.", ["reason"])
