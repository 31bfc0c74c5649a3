"""Templates rendered without a cluster, as any front end does."""

from __future__ import annotations

import pytest

from ironbell.codec.gotemplate import TemplateError
from ironbell.operations.template import Manifest, ManifestError, Rendered, render

DATA = "version: '0.1'\nname: a\nglobal_timeout: 9\ntasks:\n- name: t\n  worker: '{{ .w }}'\n  actions:\n"
ACTION = "  - {name: x, image: i, timeout: 1}\n"


def template(data: str) -> Manifest:
    lines = "".join(f"    {line}\n" for line in data.splitlines())
    return Manifest.parse(
        f"apiVersion: tinkerbell.org/v1alpha1\nkind: Template\nmetadata: {{name: t}}\nspec:\n  data: |\n{lines}",
        source="t.yaml",
    )


def test_a_valid_workflow_has_no_problems() -> None:
    assert render(template(DATA + ACTION), None, {"w": "m"}) == Rendered((DATA + ACTION).replace("{{ .w }}", "m"))


def test_a_text_that_is_not_a_valid_workflow_is_returned_with_its_problems() -> None:
    rendered = render(template(DATA + ACTION + ACTION), None, {"w": "m"})
    assert rendered.text.endswith(ACTION + ACTION)
    assert rendered.problems


def test_a_missing_value_is_an_error_with_its_line() -> None:
    with pytest.raises(TemplateError, match='template line 6: map has no entry for key "w"'):
        render(template(DATA), None, {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b", "contains no Hardware of tinkerbell.org/v1alpha1"),
        ("apiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\nmetadata: {name: h}\nspec: 7", "Hardware h: "),
        (": :", ""),
    ],
)
def test_an_error_names_its_manifest(text: str, problem: str) -> None:
    with pytest.raises(ManifestError) as error:
        render(template(DATA), Manifest.parse(text, source="h.yaml"), {})
    assert error.value.source == "h.yaml"
    assert problem in error.value.problem
    assert str(error.value) == f"h.yaml: {error.value.problem}"
