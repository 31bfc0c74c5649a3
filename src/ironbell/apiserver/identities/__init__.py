"""Identities that the API gives out and takes on: service account tokens, static tokens, impersonation."""
