"""The template engine of the Workflow controllers: renders a template with its data, and parses the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.codec import gotemplate
from ironbell.contract.servers.template_data import customboot_data, template_data
from ironbell.contract.servers.workflow_document import parse_document
from ironbell.controllers.tink.render import Rendered


class TemplateEngine:
    """Renders in this process. Calls take milliseconds, and seconds for hostile templates, so a site renders in
    separate processes: see `controllers.tink.rendering.pool`."""

    def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        """Render a Template for a Workflow of that name.

        Raises:
            TemplateError: the template does not render.
            DocumentError: the result is not a valid workflow.
        """
        content = msgspec.to_builtins(hardware) if hardware is not None else None
        return self.document(template.spec.data, content, variables)

    def document(self, text: str, hardware: Mapping[str, Any] | None, variables: Mapping[str, str]) -> Rendered:
        """Render a text for the JSON value of a Hardware.

        Raises:
            TemplateError: the text does not render.
            DocumentError: the result is not a valid workflow.
        """
        document = parse_document(gotemplate.render(text, template_data(hardware, hardware_map=variables)))
        return Rendered(document.tasks, document.global_timeout_s, document.ineffective)

    def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media.

        Raises:
            TemplateError: it does not render.
        """
        return self.address(text, msgspec.to_builtins(hardware.spec))

    def address(self, text: str, hardware_spec: Mapping[str, Any]) -> str:
        """Fill in the address for the JSON value of a Hardware's spec.

        Raises:
            TemplateError: it does not render.
        """
        return gotemplate.render(text, customboot_data(hardware_spec))

    def parse(self, text: str) -> None:
        """Check a text for errors that do not depend on data.

        Raises:
            TemplateError: the text is not a valid template.
        """
        gotemplate.check(text)
