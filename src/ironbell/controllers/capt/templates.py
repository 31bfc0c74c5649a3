"""The Template that installs a TinkerbellMachine: its own, the Hardware's, the cluster's, or the default. Pure."""

from __future__ import annotations

from datetime import datetime

from ironbell.api.capt.names import ANNOTATION_TEMPLATE_OVERRIDE
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.codec.gotemplate import TemplateError
from ironbell.contract.clusters.capabilities import capabilities
from ironbell.contract.servers.boot_token import without_token
from ironbell.contract.servers.directory import KEEP_DISKS
from ironbell.contract.servers.identity import IDENTITY
from ironbell.contract.servers.node_images import ImageSource
from ironbell.controllers.capt.imageurl import image_url, names_image
from ironbell.controllers.capt.observed import Observed, override_key
from ironbell.kube.decision import Fields
from ironbell.provisioner.default_template import Inputs, default_template
from ironbell.provisioner.keeping import install_disk, kept_disks
from ironbell.provisioner.lifecycle.created import UnusableError, marked_as, marked_as_ours
from ironbell.provisioner.lifecycle.installing import ImagePendingError
from ironbell.provisioner.node_images import FoundImage, MissingImage, default_image
from ironbell.provisioner.settings import InstallSettings


def template_for(
    observed: Observed,
    machine: Machine,
    hardware: Hardware,
    settings: InstallSettings,
    now: datetime,
    metadata: Fields,
    boot: Fields,
) -> Fields:
    """Return the Template. `boot` is how the server boots.

    Raises:
        UnusableError: the Template that is meant is missing or empty, or the image cannot be named.
        ImagePendingError: the image is the default one, and the site does not have it.
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
        meant = "annotation of the Hardware" if by_annotation else "TinkerbellCluster's spec.templateOverrideRef"
        if observed.override is None:
            raise UnusableError("TemplateNotFound", f"{where}, that the {meant} names, does not exist")
        if not observed.override.spec.data:
            raise UnusableError("TemplateEmpty", f"{where}, that the {meant} names, has no spec.data")
        return _with_text(marked_as(metadata, observed.override), observed.override.spec.data)
    if not settings.metadata_url:
        message = "the default template needs the metadata service's address: start Ironbell with --metadata-url"
        raise UnusableError("MetadataURLUnknown", f"{message}, or give a template of your own")
    image = _image(observed, machine, hardware, settings.images, now)
    disk = install_disk(hardware, kept_disks(obj, hardware))
    if not disk:
        raise UnusableError("DisksKept", f"annotation {KEEP_DISKS} keeps every disk of {hardware.metadata.name}")
    site = without_token(settings.metadata_url)
    if site != settings.metadata_url:
        metadata = marked_as_ours(metadata, hardware, boot)
        site = settings.metadata_url if IDENTITY in metadata.get("annotations", {}) else site
    text = default_template(Inputs(obj.metadata.name, image.url, disk, site, image.sha256))
    return _with_text(metadata, text)


def _with_text(metadata: Fields, text: str) -> Fields:
    return {"metadata": metadata, "spec": {"data": text}}


def _image(observed: Observed, machine: Machine, hardware: Hardware, images: ImageSource, now: datetime) -> FoundImage:
    """The image that the manifests name; where they name none, the one that the site serves for the version."""
    spec, shared = observed.obj.spec, (observed.infrastructure or TinkerbellCluster()).spec
    architecture, version = capabilities(hardware).architecture or "amd64", machine.spec.version
    if names_image(spec, shared):
        try:
            return FoundImage(image_url(spec, shared, version, architecture))
        except TemplateError as error:
            raise UnusableError("InvalidImageLookup", f"imageLookupFormat: {error}") from error
    found = default_image(images, observed.node_images, version, architecture, now)
    if isinstance(found, MissingImage):
        raise ImagePendingError(found)
    return found
