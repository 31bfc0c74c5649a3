"""The Template that installs a TinkerbellMachine: its own, the Hardware's, the cluster's, or the default. Pure.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/machine/template.go (imageURL).
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.capt.imagelookup import DEFAULT_BASE_REGISTRY, DEFAULT_FORMAT, DEFAULT_OS_DISTRO, DEFAULT_OS_VERSIONS
from ironbell.api.capt.names import ANNOTATION_TEMPLATE_OVERRIDE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster, TinkerbellClusterSpec
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachineSpec
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.codec import gotemplate
from ironbell.codec.gotemplate import TemplateError
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.boot_token import without_token
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.contract.servers.identity import IDENTITY
from ironbell.contract.servers.node_images import ImageSource
from ironbell.controllers.capt.observed import Observed, override_key
from ironbell.kube.decision import Fields
from ironbell.provisioner.default_template import Inputs, default_template
from ironbell.provisioner.disks import install_disk, kept_disks
from ironbell.provisioner.lifecycle.created import UnusableError, marked_as, marked_as_own
from ironbell.provisioner.lifecycle.installing import ImagePendingError
from ironbell.provisioner.node_images import ImageChoice, InstallSettings, MissingImage, default_image


def template_for(
    observed: Observed,
    machine: Machine,
    hardware: Hardware,
    settings: InstallSettings,
    now: datetime,
    metadata: Fields,
    boot: Fields,
) -> Fields:
    """Return the Template. `boot` is the server's way to boot.

    Raises:
        UnusableError: the Template is missing or empty, or the address of the image cannot be determined.
        ImagePendingError: the image is the default one, and the site does not have it yet.
    """
    obj, infrastructure = observed.obj, observed.infrastructure or TinkerbellCluster()
    if obj.spec.template_override:
        return _with_text(metadata, obj.spec.template_override)
    reference = override_key(hardware, infrastructure)
    by_annotation = ANNOTATION_TEMPLATE_OVERRIDE in hardware.metadata.annotations
    if infrastructure.spec.template_override and not by_annotation:
        return _with_text(metadata, infrastructure.spec.template_override)
    if reference is not None:
        where = f"Template {reference[0]}/{reference[1]}"
        source = "the Hardware's annotation" if by_annotation else "the TinkerbellCluster's spec.templateOverrideRef"
        if observed.override is None:
            raise UnusableError("TemplateNotFound", f"{where}, which {source} names, does not exist.")
        if not observed.override.spec.data:
            raise UnusableError("TemplateEmpty", f"{where}, which {source} names, has no spec.data.")
        return _with_text(marked_as(metadata, observed.override), observed.override.spec.data)
    if not settings.metadata_url:
        message = "The default template needs the address of the metadata service. Start Ironbell with --metadata-url"
        raise UnusableError("MetadataURLUnknown", f"{message}, or set spec.templateOverride.")
    image = _image(observed, machine, hardware, settings.images, now)
    disk = install_disk(hardware, kept_disks(obj, hardware))
    if not disk:
        message = f"The annotation {KEEP_DISKS} keeps every disk of Hardware {hardware.metadata.name}."
        raise UnusableError("DisksKept", message)
    site = without_token(settings.metadata_url)
    if site != settings.metadata_url:
        metadata = marked_as_own(metadata, hardware, boot)
        site = settings.metadata_url if IDENTITY in metadata.get("annotations", {}) else site
    text = default_template(Inputs(obj.metadata.name, image.url, disk, site, image.sha256))
    return _with_text(metadata, text)


def _with_text(metadata: Fields, text: str) -> Fields:
    return {"metadata": metadata, "spec": {"data": text}}


def _image(observed: Observed, machine: Machine, hardware: Hardware, images: ImageSource, now: datetime) -> ImageChoice:
    """Return the image that the manifests choose, or else the one that the site serves for the version."""
    spec, shared = observed.obj.spec, (observed.infrastructure or TinkerbellCluster()).spec
    architecture, version = capabilities(hardware).architecture or "amd64", machine.spec.version
    if names_image(spec, shared):
        try:
            return ImageChoice(image_url(spec, shared, version, architecture))
        except TemplateError as error:
            raise UnusableError("InvalidImageLookup", f"imageLookupFormat: {error}") from error
    image = default_image(images, observed.node_images, version, architecture, now)
    if isinstance(image, MissingImage):
        raise ImagePendingError(image)
    return image


def names_image(machine: TinkerbellMachineSpec, cluster: TinkerbellClusterSpec) -> bool:
    """Return whether the manifests choose an image.

    Upstream's webhook and CRD fill in defaults for a TinkerbellCluster. These name images that do not exist and are
    not the author's choice. A machine has no defaults: each value that is set was chosen.
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
    """Return the URL of the image. A field that the machine leaves empty is the cluster's.

    Beside upstream's four names the format has `Architecture`, as Kubernetes names it. Build metadata of a version
    (`v1.30.0+build`) is written with `_`, since an image's tag cannot have a `+`.

    Raises:
        TemplateError: the format does not parse, names an unknown field, or needs more steps than a URL should.
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
