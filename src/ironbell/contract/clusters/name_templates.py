"""Names of objects: from a naming template such as `{{ .machineSet.name }}-{{ .random }}`, or with a generated suffix.

A name longer than 63 characters is cut so that it still ends in the random part. A suffix looks random and is not: the
same seed gives the same name.

Source: kubernetes-sigs/cluster-api: internal/topology/names/names.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.gotemplate import TemplateError, render
from ironbell.codec.gotemplate.builtins import BUILTINS
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and no digits that look like letters, so that no words come out."""
SUFFIX_LENGTH: Final = 5
MAX_NAME: Final = 63


def suffix(*seed: str | int, length: int = SUFFIX_LENGTH) -> str:
    """Characters that follow from the seed."""
    number = int.from_bytes(sha256("\0".join(map(str, seed)).encode()).digest(), "big")
    characters = []
    for _ in range(length):
        number, position = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[position])
    return "".join(characters)


def generated_name(base: str, *seed: str | int) -> str:
    """A base (which usually ends in a dash), cut if need be, and a suffix; at most 63 characters."""
    return base[: MAX_NAME - SUFFIX_LENGTH] + suffix(*seed)


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
        NameTemplateError: it does not parse, or reads a variable that does not exist.
    """
    if template == MACHINE_SET_MACHINES and "machineSet" in variables:
        return shortened(f"{variables['machineSet']['name']}-{random}", random)
    return _rendered(
        template, cluster, random, tuple((name, tuple(values.items())) for name, values in variables.items())
    )


@lru_cache(maxsize=1024)
def _rendered(
    template: str, cluster: str, random: str, variables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
) -> str:
    """Render a name. Results are cached: every reconcile of an owner that may need one more object renders one."""
    data = {"cluster": {"name": cluster}, "random": random, **{name: dict(values) for name, values in variables}}
    try:
        return shortened(render(template, data, functions=BUILTINS, steps=BRIEF_STEPS, seconds=BRIEF_SECONDS), random)
    except TemplateError as error:
        raise NameTemplateError(f"naming template {template!r}: {error}") from error


def shortened(name: str, random: str) -> str:
    """Return the name, cut to the length of a label value, followed by the random part if it had to be cut."""
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - len(random)] + random
