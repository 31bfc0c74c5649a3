"""Where rendering fails, what it says, and what it may cost."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.codec.gotemplate import FUNCTIONS, TemplateError, render


@pytest.mark.parametrize(
    ("template", "line", "column", "problem"),
    [
        ("a\nb {{ .x }}", 2, 5, 'map has no entry for key "x"'),
        ("{{ if true }}\n{{ nope 1 }}", 2, 0, 'function "nope" not defined'),
        ("a\n\n{{ .a", 3, 0, "unclosed action"),
        ("{{ range .l }}\n", 2, 0, "unexpected EOF: an {{end}} is missing"),
        ("\n\n{{ fail `disk too small` }}", 3, 3, "error calling fail: disk too small"),
        ('é{{ add 1\n (div 1 0) }}', 2, 2, "error calling div: integer divide by zero"),
        ('{{ env "HOME" }}', 1, 0, 'function "env" not defined'),
        ("{{ now }}", 1, 0, 'function "now" not defined'),
        ("{{ uuidv4 }}", 1, 0, 'function "uuidv4" not defined'),
        ("{{ eq .n 1 }}", 1, 3, "error calling eq: incompatible types for comparison: float64 and int"),
    ],
)  # fmt: skip
def test_errors_name_place_and_reason(template: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, {"l": [1.0], "n": 1.0})
    assert (caught.value.line, caught.value.column, caught.value.problem) == (line, column, problem)


def test_the_excerpt_is_the_line_of_the_template() -> None:
    with pytest.raises(TemplateError) as caught:
        render("tasks:\n  - worker: {{ .device_2 }}\n", {"device_1": "x"})
    assert caught.value.excerpt == "- worker: {{ .device_2 }}"
    assert str(caught.value) == 'template line 2: map has no entry for key "device_2"'


@pytest.mark.parametrize(
    "template",
    ["{{ .secret.x }}", "{{ len .number }}", "{{ range .secret }}{{ end }}", "{{ index .secret `a` }}",
     "{{ .secret | div 1 }}", "{{ netmaskToPrefixLength .secret }}", "{{ fromYaml (print `[` .secret) }}",
     "{{ mustFromJson .secret }}",
     "{{ semver .secret }}", "{{ regexFind (print `(` .secret) `a` }}", "{{ urlParse (print `:` .secret) }}",
     "{{ call .secret }}", "{{ eq .secret 1 }}", "{{ mustToDate `2006` .secret }}", "{{ dig `a` `b` .secret }}"],
)  # fmt: skip
def test_errors_never_hold_values_of_the_data(template: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, {"secret": "hunter2", "number": 4711.0})
    assert "hunter2" not in caught.value.problem
    assert "4711" not in caught.value.problem


def test_the_output_is_capped_as_upstream() -> None:
    assert len(render("{{ repeat 262144 `x` }}", {})) == 262_144
    with pytest.raises(TemplateError, match="rendered template exceeds 262144 bytes"):
        render("{{ repeat 262144 `x` }}y", {})


@pytest.mark.parametrize(
    "template",
    [
        "{{ until 100000000 }}",
        "{{ untilStep 0 9223372036854775807 1 }}",
        "{{ seq 1 1000000000 }}",
        "{{ $x := repeat 999999999 `x` }}",
        "{{ $x := repeat 1000000000000 `` | repeat 1000000000 }}{{ $y := repeat 4194305 `a` }}",
        "{{ range 10000000000 }}{{ end }}",
        "{{ range until 90000 }}{{ range until 90000 }}{{ end }}{{ end }}",
        "{{ $x := `aaaaaaaaaaaaaaaa` }}{{ range until 64 }}{{ $x = print $x $x }}{{ end }}",
        "{{ $x := list 1 }}{{ range until 64 }}{{ $x = concat $x $x }}{{ end }}",
        "{{ $x := list 1 }}{{ range until 64 }}{{ $x = list $x $x }}{{ end }}{{ $x }}",
        "{{ $x := list 1 }}{{ range until 64 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}",
        "{{$x := 1}}{{$y := 1}}{{range 40}}{{ $x = list $x $x }}{{ $y = list $y $y }}{{ end }}{{ deepEqual $x $y }}",
        "{{ $x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x }}",
        "{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ deepCopy $d }}",
        "{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ $e := dict }}{{ $_ := set $e `d` $e }}{{ deepEqual $d $e }}",
        "{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ $e := dict }}{{ $_ := set $e `d` $e }}{{ merge $d $e }}",
        "{{ $x := list 1 }}{{ range until 300 }}{{ $x = list $x }}{{ end }}{{ $x }}",
        "{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ $d }}",
        "{{ $d := dict }}{{ $_ := set $d `d` $d }}{{ toYaml $d }}",
        '{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}',
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ if 1 }}" * 5000 + "{{ end }}" * 5000,
        "{{ if 0 }}" + "{{ else if 0 }}" * 5000 + "{{ end }}",
        "{{ regexMatch `(((a{1,100}){1,100}){1,100})` `a` | print }}{{ mustRegexMatch `((a{100}){100}){100}` `a` }}",
        "{{ printf `%999999999d` 1 }}{{ range 1000 }}{{ $x := printf `%1000000d` 1 }}{{ $y := repeat 9 $x }}{{ end }}",
        "{{ indent 1000000000 `x` }}",
        "{{ $x := regexReplaceAll `a` (repeat 4000 `a`) (repeat 4000 `b`) }}",
    ],
)  # fmt: skip
def test_what_would_take_any_time_or_memory_fails_soon(template: str) -> None:
    begin = time.process_time()
    with pytest.raises(TemplateError):
        render(template, {})
    assert time.process_time() - begin < 3


def test_a_regular_expression_takes_linear_time() -> None:
    begin = time.process_time()
    assert render("{{ regexMatch `^(a+)+$` (print (repeat 3000 `a`) `b`) }}", {}) == "false"
    assert time.process_time() - begin < 3


def test_functions_are_sprigs_hermetic_ones_and_tinkerbells() -> None:
    assert {"formatPartition", "netmaskToPrefixLength", "toYaml", "fromYaml", "and", "html", "regexSplit"} <= set(
        FUNCTIONS
    )
    removed = "date date_in_zone date_modify now htmlDate htmlDateInZone dateInZone dateModify randAlphaNum randAlpha "
    removed += "randAscii randNumeric randBytes uuidv4 env expandenv getHostByName"
    assert not set(removed.split()) & set(FUNCTIONS)


_WORDS = """
{{ }} {{- -}} .a . $ $x := | ( ) if end else range with 1 nil define template block break , printf % é print /* */ index
toYaml list dict regexFind fromYaml
"""
_PIECES = st.sampled_from([*_WORDS.split(), " ", '"a"', "`b`", "'c'", "\n"])


@settings(max_examples=300)
@given(st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=30))
def test_any_text_renders_or_raises_the_modules_error(template: str) -> None:
    with contextlib.suppress(TemplateError):
        render(template, {"a": {"b": [1.0, None, "x"]}})


@pytest.mark.parametrize(
    ("template", "output"),
    [
        ("{{ .x }}", "<no value>"),
        ("{{ .x.y.z }}", "<no value>"),
        ("{{ if .x }}true{{ end }}", ""),
        ('{{ ne .x "" }}', "true"),
        ("{{ not .x }}", "true"),
        ('{{ .x | default "fallback" }}', "fallback"),
        ("{{ range .x }}a{{ else }}none{{ end }}", "none"),
    ],
)
def test_without_the_option_a_missing_key_is_no_value(template: str, output: str) -> None:
    assert render(template, {}, missing_is_error=False) == output


def test_without_the_option_a_field_of_null_is_still_an_error() -> None:
    with pytest.raises(TemplateError, match="nil pointer"):
        render("{{ .n.y }}", {"n": None}, missing_is_error=False)
