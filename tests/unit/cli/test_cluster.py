"""What all verbs of `ironbell cluster` have in common."""

from __future__ import annotations

from ironbell.cli.objects.cluster import cluster

VERBS = ("create", "delete", "describe", "kubeconfig", "list", "scale", "upgrade")


def test_every_verb_can_wait_and_says_how_long() -> None:
    assert sorted(cluster.commands) == sorted(VERBS)
    for name, command in cluster.commands.items():
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {"--wait", "--no-wait", "--timeout"} <= options, name
