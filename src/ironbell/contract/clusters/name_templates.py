"""Names from a naming template such as `{{ .machineSet.name }}-{{ .random }}`.

A name longer than 63 characters is cut so that it still ends in the random part.

Source: kubernetes-sigs/cluster-api: internal/topology/names/names.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.gotemplate import TemplateError, render
from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.limits import BRIEF_SECONDS, BRIEF_STEPS

MAX_NAME: Final = 63
RANDOM_LENGTH: Final = 5
RANDOM: Final = "{{ .random }}"
MACHINE_SET_MACHINES: Final = "{{ .machineSet.name }}-{{ .random }}"


class NameTemplateError(IronbellError):
    """A naming template that gives no name."""

    reason = "InvalidNamingTemplate"
    retry = Retry.NEVER


def render_name(template: str, cluster: str, random: str, variables: Mapping[str, Mapping[str, str]]) -> str:
    """The name that a template gives.

    Args:
        template: the template's text.
        cluster: name of the cluster, `.cluster.name`.
        random: five characters, `.random`.
        variables: what else there is, such as `{"machineSet": {"name": "md-0"}}`.

    Raises:
        NameTemplateError: it does not parse, or reads what is not there.
    """
    if template == MACHINE_SET_MACHINES and "machineSet" in variables:
        return shortened(f"{variables['machineSet']['name']}-{random}", random)
    return _rendered(template, cluster, random, tuple((name, tuple(each.items())) for name, each in variables.items()))


@lru_cache(maxsize=1024)
def _rendered(
    template: str, cluster: str, random: str, variables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
) -> str:
    """Kept for a while: a name is asked for in every look at an owner that might need one more object."""
    data = {"cluster": {"name": cluster}, "random": random, **{name: dict(each) for name, each in variables}}
    try:
        return shortened(render(template, data, functions=BUILTINS, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS), random)
    except TemplateError as error:
        raise NameTemplateError(f"naming template {template!r}: {error}") from error


def shortened(name: str, random: str) -> str:
    """The name, cut to what a label value may have, with the random part at its end if it had to be cut."""
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - len(random)] + random
