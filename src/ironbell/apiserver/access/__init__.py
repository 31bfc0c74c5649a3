"""Identities of the embedded API and their permissions: certificates, tokens, roles, kubeconfigs."""
