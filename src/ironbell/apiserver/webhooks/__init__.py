"""Webhooks over TLS: admission by servers of others, and conversion between the versions of their kinds."""
