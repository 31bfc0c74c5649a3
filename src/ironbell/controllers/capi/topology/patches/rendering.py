"""Values of patches: Go templates over the variables, rendered and read as YAML, and variables by their path.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/inline/json_patch_generator.go,
core/reconcilers/topology/cluster/patches/variables/value.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ironbell.codec.gotemplate import TemplateError, check, render
from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS, CallError
from ironbell.codec.gotemplate.golib.gojson import floats
from ironbell.codec.gotemplate.sprig import SPRIG
from ironbell.codec.goyaml import YamlError, load
from ironbell.controllers.capi.topology.desired.model import TopologyError

FUNCTIONS: Final = {**BUILTINS, **SPRIG}


def rendered_value(template: str, variables: Mapping[str, Any]) -> Any:
    """Render a template to a value. All numbers are float64 in it, as JSON gives them to Go.

    Raises:
        TopologyError: the template does not render, or the result is not YAML.
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
        raise TopologyError(f'failed to render template "{_shortened(template)}": {error}') from error
    try:
        return load(text)
    except YamlError as error:
        raise TopologyError(f'failed to unmarshal rendered template "{_shortened(text)}": {error}') from error


def template_problem(template: str) -> str:
    """The reason why a text is not a valid template; empty if it is."""
    try:
        check(template, functions=FUNCTIONS, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS)
    except TemplateError as error:
        return str(error)
    return ""


def _shortened(text: str) -> str:
    line = text.strip().replace("\n", "\\n")
    return line if len(line) <= 120 else f"{line[:119]}…"


_SEGMENT: Final = re.compile(r"([^\[\]]*)(?:\[(\d+)\].*)?", re.DOTALL)


def value_at(variables: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as `builtin.cluster.network.pods[0]`.

    Raises:
        TopologyError: the path is not valid, or does not exist.
    """
    value: Any = variables
    for number, segment in enumerate(path.split(".")):
        name, index = _parsed(segment, path)
        if not isinstance(value, Mapping) or name not in value:
            if number == 0:
                raise TopologyError(f'variable "{segment}" does not exist')
            raise TopologyError(f'variable "{path}" does not exist: failed to lookup segment "{name}"')
        value = value[name]
        if index is None:
            continue
        if not isinstance(value, list):
            raise TopologyError(f'variable "{path}" is invalid: failed to get array "{name}"')
        if len(value) <= index:
            raise TopologyError(f'variable "{path}" is invalid: array does not have index {index}')
        value = value[index]
    return value


def _parsed(segment: str, path: str) -> tuple[str, int | None]:
    parts = _SEGMENT.fullmatch(segment)
    if parts is None:
        raise TopologyError(f'variable "{path}" is invalid: failed to parse path segment "{segment}"')
    return parts[1], None if parts[2] is None else int(parts[2])
