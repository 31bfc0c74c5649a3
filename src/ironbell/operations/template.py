"""Render Workflow templates without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import gotemplate
from ironbell.codec.goyaml import YamlError, load_all
from ironbell.contract.servers.template_data import template_data
from ironbell.contract.servers.workflow_document import DocumentError, parse_document
from ironbell.operations.discovered import Object

_VERSION: Final = TEMPLATE.api_version


class ManifestError(IronbellError):
    """A manifest does not contain the one object that is expected; `source` names the manifest."""

    reason, retry = "InvalidManifest", Retry.NEVER

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source, self.problem = source, problem


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text of a workflow."""

    text: str
    problems: tuple[str, ...] = ()
    """Reasons why the text is not a valid workflow; empty if it is."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects of a file that have our API version."""

    source: str
    objects: Sequence[Object]

    @classmethod
    def parse(cls, text: str, *, source: str) -> Manifest:
        """
        Raises:
            ManifestError: the text is not valid YAML.
        """
        try:
            return cls(source, tuple(_objects(list(load_all(text.encode())))))
        except YamlError as error:
            raise ManifestError(source, str(error)) from None

    def only(self, kind: str) -> Object:
        """The only object of a kind.

        Raises:
            ManifestError: there is no such object, or there are several.
        """
        objects = [item for item in self.objects if item.get("kind") == kind]
        if len(objects) == 1:
            return objects[0]
        if not objects:
            raise ManifestError(self.source, f"contains no {kind} of {_VERSION}")
        names = ", ".join(map(_name, objects))
        raise ManifestError(
            self.source, f"contains {len(objects)} objects of kind {kind} ({names}); use a file with only one"
        )


def render(template: Manifest, hardware: Manifest | None, variables: Mapping[str, str]) -> Rendered:
    """Render a Template for a Hardware; a text that is not a valid workflow is returned with its problems.

    Raises:
        ManifestError: a manifest does not contain one object of its kind, or a field of it has the wrong type.
        gotemplate.TemplateError: the template does not render.
    """
    source = template.only(TEMPLATE.kind)
    data_of = _checked_hardware(hardware) if hardware is not None else None
    spec = source.get("spec")
    data = spec.get("data") if isinstance(spec, dict) else None
    if not isinstance(data, str):
        raise ManifestError(template.source, "spec.data of the Template must be a text")
    text = gotemplate.render(data, template_data(data_of, hardware_map=variables))
    try:
        parse_document(text)
    except DocumentError as error:
        return Rendered(text, tuple(map(str, error.problems)))
    return Rendered(text)


def _checked_hardware(manifest: Manifest) -> Object:
    hardware = manifest.only(HARDWARE.kind)
    try:
        HARDWARE.decode(msgspec.json.encode(hardware))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise ManifestError(manifest.source, f"Hardware {_name(hardware)}: {error}") from None
    return hardware


def _objects(pending: list[Any]) -> Iterator[Object]:
    """The objects of our API version among documents, including the items of lists."""
    while pending:
        item = pending.pop(0)
        if isinstance(item, list):
            pending = item + pending
        elif isinstance(item, dict) and isinstance(item.get("items"), list) and str(item.get("kind")).endswith("List"):
            pending = item["items"] + pending
        elif isinstance(item, dict) and item.get("apiVersion") == _VERSION:
            yield item


def _name(item: Object) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"
