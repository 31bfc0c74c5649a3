"""Which changes of CoreDNS's version can be made without rewriting its Corefile. Pure.

Upstream rewrites Corefiles with a library that knows what each version of CoreDNS dropped. Since 1.8.0 no version has
dropped anything that a Corefile of kubeadm may hold, so that from there on it stays as it is. From older versions the
change is refused: the Corefile is to be migrated by hand first, or CoreDNS left alone with the annotation
`controlplane.cluster.x-k8s.io/skip-coredns`.

Source: coredns/corefile-migration: migration/versions.go, migration/plugins.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.base.errors import IronbellError, Retry

UNCHANGED_SINCE: Final = (1, 8, 0)


class CorefileError(IronbellError):
    """The Corefile would have to be rewritten."""

    reason, retry = "CorefileNotMigrated", Retry.BACKOFF


def check_migration(from_version: tuple[int, int, int], to_version: tuple[int, int, int]) -> None:
    """Hold a change of version to leaving the Corefile good.

    Raises:
        CorefileError: it would not, or nobody knows.
    """
    if from_version == to_version or from_version >= UNCHANGED_SINCE:
        return
    before = ".".join(map(str, from_version))
    raise CorefileError(
        f"CoreDNS {before} is older than 1.8.0, whose Corefile is not migrated; migrate it by hand and set the image "
        "of the Deployment coredns, or set the annotation controlplane.cluster.x-k8s.io/skip-coredns"
    )
