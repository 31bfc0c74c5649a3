"""kube-vip as upstream's cluster template wants it: the address of a control plane that moves between its machines.

The template of Cluster API Provider Tinkerbell pulls this image with `ctr` before kubeadm runs, and has it write a
static pod. What a node needs for that, unchanged and without a registry: the image where `ctr` looks (the namespace
`default`) and where the kubelet does (`k8s.io`), a `ctr images pull` that finds it (`files/overlay/usr/local/bin/ctr`),
jq, and a way past kubeadm's own order on the first machine (`files/overlay/usr/lib/ironbell/kube-vip-kubeconfig`).

Source: tinkerbell/cluster-api-provider-tinkerbell: templates/cluster-template.yaml; kube-vip/kube-vip: Makefile (the
variable of the version), pkg/kubevip/config_generator.go (the manifest names the image by that version).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ironbell.image.kubernetes.golang import Program
from ironbell.image.kubernetes.release import ContainerImage

NAME: Final = "kube-vip"
IN_TEMPLATE: Final = "ghcr.io/kube-vip/kube-vip:v0.9.2"
"""As upstream's template names it."""
_MODULE: Final = "github.com/kube-vip/kube-vip"
_SUMS: Final = {
    "v0.9.2": (
        f"{_MODULE} v0.9.2 h1:LAvGmK34svcNhTxXNyDoV7s1bHYEgXrM3ff2FxfH6Us=",
        f"{_MODULE} v0.9.2/go.mod h1:xt5AR9SOxcQhClhr5F++zwFT4K6OyFQ1n8azAm9V1CU=",
    )
}
"""Of the files of upstream's Git tag: not every checksum database knows each version of a module."""


def program(tag: str) -> Program:
    """The image's one program. The manifests that it writes name the image by its own version. Pure."""
    return Program(NAME, _MODULE, _MODULE, tag, version_variable="main.Version", sums=_SUMS.get(tag, ()))


def unless_named(references: Iterable[str]) -> tuple[str, ...]:
    """The template's image, but for somebody who names another version of it. Pure."""
    return () if any(ContainerImage(one).name == NAME for one in references) else (IN_TEMPLATE,)
