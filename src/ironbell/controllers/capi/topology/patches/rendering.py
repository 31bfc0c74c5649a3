"""Values of patches that are written as Go templates over the variables: rendered, then read as YAML.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/inline/json_patch_generator.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ironbell.codec.gotemplate import TemplateError, check, render
from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.golib.gojson import floats
from ironbell.codec.gotemplate.limits import BRIEF_SECONDS, BRIEF_STEPS
from ironbell.codec.gotemplate.sprig import SPRIG
from ironbell.codec.goyaml import YamlError, load
from ironbell.controllers.capi.topology.errors import TopologyError

FUNCTIONS: Final = {**BUILTINS, **SPRIG}


def rendered_value(template: str, variables: Mapping[str, Any]) -> Any:
    """The value that a template gives. All numbers are float64 in it, as JSON gives them to Go.

    Raises:
        TopologyError: it does not render, or what it renders is no YAML.
    """
    try:
        text = render(
            template,
            floats(dict(variables)),
            functions=FUNCTIONS,
            missing_is_error=False,
            steps=BRIEF_STEPS,
            seconds=BRIEF_SECONDS,
        )
    except (TemplateError, CallError) as error:
        raise TopologyError(f'failed to render template "{_shown(template)}": {error}') from error
    try:
        return load(text)
    except YamlError as error:
        raise TopologyError(f'failed to unmarshal rendered template "{_shown(text)}": {error}') from error


def template_fault(template: str) -> str:
    """Why a text is no template; empty if it is one."""
    try:
        check(template, functions=FUNCTIONS, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS)
    except TemplateError as error:
        return str(error)
    return ""


def _shown(text: str) -> str:
    line = text.strip().replace("\n", "\\n")
    return line if len(line) <= 120 else f"{line[:119]}…"
