"""Names come from templates, are never too long, and end in the random part."""

from __future__ import annotations

import pytest

from ironbell.contract.clusters.name_templates import MACHINE_SET_MACHINES, NameTemplateError, render_name

SET = {"machineSet": {"name": "md-0"}}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (MACHINE_SET_MACHINES, "md-0-abcde"),
        ("{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}", "prod-md-0-abcde"),
        ("x" * 70 + "-{{ .random }}", "x" * 58 + "abcde"),
    ],
)
def test_a_template_gives_a_name(template: str, name: str) -> None:
    assert render_name(template, "prod", "abcde", SET) == name


@pytest.mark.parametrize("template", ["{{ .machineSet.nam }}-{{ .random }}", "{{ .machineSet", "{{ .random | upper }}"])
def test_a_template_that_gives_no_name_is_refused(template: str) -> None:
    with pytest.raises(NameTemplateError):
        render_name(template, "prod", "abcde", SET)
