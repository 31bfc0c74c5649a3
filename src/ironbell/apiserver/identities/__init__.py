"""Identities of clients: service account tokens, static tokens, impersonation."""
