"""The address of a machine's image: a Go template over four fields, as far as anybody has set one. Pure.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/template.go (imageURL).
"""

from __future__ import annotations

from ironbell.api.capt.imagelookup import DEFAULT_BASE_REGISTRY, DEFAULT_FORMAT, DEFAULT_OS_DISTRO, DEFAULT_OS_VERSIONS
from ironbell.api.capt.tinkerbellcluster import TinkerbellClusterSpec
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.codec import gotemplate
from ironbell.codec.gotemplate.limits import BRIEF_SECONDS, BRIEF_STEPS


def names_image(machine: TinkerbellMachineSpec, cluster: TinkerbellClusterSpec) -> bool:
    """Whether somebody has chosen where images are.

    Upstream's webhook and CRD fill in defaults for a TinkerbellCluster; these name images that nobody serves, and say
    nothing about what its author wants. A machine has no defaults: whatever it has was chosen.
    """
    own = (
        machine.image_lookup_format,
        machine.image_lookup_base_registry,
        machine.image_lookup_os_distro,
        machine.image_lookup_os_version,
    )
    distro = cluster.image_lookup_os_distro.lower() or DEFAULT_OS_DISTRO
    shared = (
        (cluster.image_lookup_format, DEFAULT_FORMAT),
        (cluster.image_lookup_base_registry, DEFAULT_BASE_REGISTRY),
        (distro, DEFAULT_OS_DISTRO),
        (cluster.image_lookup_os_version, DEFAULT_OS_VERSIONS.get(distro, "")),
    )
    return any(own) or any(value and value != default for value, default in shared)


def image_url(
    machine: TinkerbellMachineSpec, cluster: TinkerbellClusterSpec, version: str, architecture: str = "amd64"
) -> str:
    """Where the image is: each field is the machine's, or the cluster's where the machine leaves it empty.

    Beside upstream's four names the format knows `Architecture`, as Kubernetes names it. Build metadata of a version
    (`v1.30.0+build`) is written with `_`, since an image's tag cannot have a `+`.

    Raises:
        TemplateError: the format does not parse, names something else, or takes more work than an address does.
    """
    distro = (machine.image_lookup_os_distro or cluster.image_lookup_os_distro or DEFAULT_OS_DISTRO).lower()
    os_version = (
        machine.image_lookup_os_version or cluster.image_lookup_os_version or DEFAULT_OS_VERSIONS.get(distro, "")
    )
    values = {
        "BaseRegistry": machine.image_lookup_base_registry
        or cluster.image_lookup_base_registry
        or DEFAULT_BASE_REGISTRY,
        "OSDistro": distro,
        "OSVersion": os_version.replace(".", ""),
        "KubernetesVersion": version.replace("+", "_"),
        "Architecture": architecture,
    }
    text = machine.image_lookup_format or cluster.image_lookup_format or DEFAULT_FORMAT
    return gotemplate.render(text, values, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS)
