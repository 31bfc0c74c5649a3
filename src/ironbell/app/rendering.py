"""The template engine that the Workflow controllers use: templates, their data and the document, put together."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.codec import gotemplate
from ironbell.contract.template_data import customboot_data, template_data
from ironbell.contract.workflow_document import parse_document
from ironbell.controllers.tink.render import Rendered


class TemplateEngine:
    """Satisfies `controllers.tink.render.Renderer`. Its calls take milliseconds; they are made in threads."""

    def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        """Render a Template for a Workflow of that name.

        Raises:
            TemplateError: the template does not render.
            DocumentError: what it renders to is no workflow.
        """
        content = msgspec.to_builtins(hardware) if hardware is not None else None
        text = gotemplate.render(template.spec.data, template_data(content, hardware_map=variables))
        document = parse_document(text)
        return Rendered(document.tasks, document.global_timeout_s, document.ineffective)

    def media_url(self, text: str, hardware: Hardware) -> str:
        """Fill in the address of custom boot media.

        Raises:
            TemplateError: it does not render.
        """
        return gotemplate.render(text, customboot_data(msgspec.to_builtins(hardware.spec)))

    def parse(self, text: str) -> None:
        """Look for faults that no data can cure.

        Raises:
            TemplateError: the text is no template.
        """
        gotemplate.check(text)
