"""A kubeconfig of an API that does not answer, for what a process does before it is asked."""

from __future__ import annotations

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: a, user: u}}]
current-context: c
"""
