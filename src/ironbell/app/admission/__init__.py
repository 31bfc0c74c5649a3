"""Admission as it is composed: in the embedded API's process, and as webhooks for another API server."""
