"""Templates that cost more than they look like, one per function that was found to: each ends by its limit, and soon.

Each ran for more than half a minute when a call was one step, whatever it did.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from ironbell.codec.gotemplate import FUNCTIONS, LimitError, TemplateError, check, render
from ironbell.codec.gotemplate.errors import BRIEF_SECONDS, BRIEF_STEPS, STEPS, CallError
from ironbell.codec.gotemplate.meter import LimitExceeded, charge, metered

SOON_S = 5.0
"""Of processor time; a step is a microsecond and a half, and there are a million of them."""
MANY = "{{ range 100000 }}"
ATTACKS = {
    "derivePassword": MANY + "{{ $x := derivePassword 1 `long` `p` `u` `s` }}{{ end }}",
    "bcrypt": MANY + "{{ $x := bcrypt `p` }}{{ end }}",
    "htpasswd": MANY + "{{ $x := htpasswd `u` `p` }}{{ end }}",
    "genPrivateKey rsa": MANY + "{{ $x := genPrivateKey `rsa` }}{{ end }}",
    "genPrivateKey dsa": MANY + "{{ $x := genPrivateKey `dsa` }}{{ end }}",
    "genPrivateKey ecdsa": "{{ range 90000 }}" + MANY + "{{ $x := genPrivateKey `ecdsa` }}{{ end }}{{ end }}",
    "genCA": MANY + "{{ $x := genCA `a` 1 }}{{ end }}",
    "genSelfSignedCert": MANY + "{{ $x := genSelfSignedCert `a` list list 1 }}{{ end }}",
    "genCAWithKey": "{{ $k := genPrivateKey `ecdsa` }}" + MANY + "{{ $x := genCAWithKey `a` 1 $k }}{{ end }}",
    "uniq": "{{ $l := until 999 }}{{ range 1000 }}{{ $x := uniq $l }}{{ end }}",
    "without": "{{ $l := until 9999 }}{{ range 1000 }}{{ $x := without $l 1 2 3 4 5 }}{{ end }}",
    "has": "{{ $l := until 99999 }}{{ range 1000 }}{{ $x := has `x` $l }}{{ end }}",
    "deepEqual": "{{ $l := until 9999 }}{{ $m := until 9999 }}{{ range 1000 }}{{ $x := deepEqual $l $m }}{{ end }}",
    "regexMatch": "{{ $t := repeat 500000 `ab` }}{{ range 1000 }}{{ $x := regexMatch `(a|b|ab)*c` $t }}{{ end }}",
    "regexFindAll": "{{ $t := repeat 20000 `a` }}{{ range 1000 }}{{ $x := regexFindAll `a*b|a` $t -1 }}{{ end }}",
    "regexReplaceAll": "{{ $t := repeat 20000 `a` }}{{ range 1000 }}{{ $x := regexReplaceAll `a` $t `b$0` }}{{ end }}",
    "upper": "{{ $t := repeat 1000000 `a` }}{{ range 1000 }}{{ $x := upper $t }}{{ end }}",
    "snakecase": "{{ $t := repeat 100000 `aB` }}{{ range 1000 }}{{ $x := snakecase $t }}{{ end }}",
    "trimAll": "{{ $t := until 90000 | join `é` }}{{ range 1000 }}{{ $x := trimAll $t $t }}{{ end }}",
    "toDate": "{{ $t := repeat 9999 `2006 ` }}{{ range 1000 }}{{ $x := mustToDate $t $t }}{{ end }}",
    "toJson": "{{ $l := until 90000 }}{{ range 1000 }}{{ $x := toJson $l }}{{ end }}",
    "toYaml": "{{ $l := until 90000 }}{{ range 1000 }}{{ $x := toYaml $l }}{{ end }}",
    "fromYaml": "{{ $t := repeat 20000 `- a\n` }}{{ range 1000 }}{{ $x := fromYaml $t }}{{ end }}",
    "print": "{{ $l := until 90000 }}{{ range 1000 }}{{ $x := print $l }}{{ end }}",
    "join": "{{ $l := until 90000 }}{{ $t := repeat 1000000 `a` }}{{ $x := join $t $l }}",
    "text": "{{ 1 }}" * 100_000,
}


@pytest.fixture
def processor_time() -> Iterator[None]:
    began = time.thread_time()
    yield
    assert time.thread_time() - began < SOON_S


SEEN = ("derivePassword", "bcrypt", "genPrivateKey rsa", "genCA", "uniq", "regexMatch")


@pytest.mark.usefixtures("processor_time")
@pytest.mark.parametrize("name", SEEN)
def test_a_template_that_was_seen_to_run_for_half_a_minute_ends_by_its_limit(name: str) -> None:
    with pytest.raises(TemplateError, match=rf"takes more than {STEPS} steps of work: make it simpler"):
        render(ATTACKS[name], {})


@pytest.mark.usefixtures("processor_time")
@pytest.mark.parametrize("name", sorted(set(ATTACKS) - set(SEEN)))
def test_what_other_functions_cost_is_charged_too(name: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(ATTACKS[name], {}, steps=STEPS // 10)
    # Two have a bound of their own.
    assert isinstance(caught.value, LimitError) or name in ("join", "toDate")


@pytest.mark.usefixtures("processor_time")
def test_parsing_is_charged() -> None:
    with pytest.raises(LimitError):
        check("{{ if " + "1 " * 100_000, steps=STEPS // 10)


def test_the_clock_ends_what_steps_do_not_foresee() -> None:
    began = time.thread_time()
    with pytest.raises(LimitError, match=r"takes more than 0.2 s of processor time: make it simpler"):
        render("{{ range 100000 }}{{ $x := add 1 2 }}{{ end }}", {}, steps=1 << 40, seconds=0.2)
    assert time.thread_time() - began < 1


def test_a_limit_names_the_function_and_the_line() -> None:
    with pytest.raises(LimitError) as caught:
        render("a\n{{ range 100 }}\n{{ $x := bcrypt `p` }}{{ end }}", {})
    assert str(caught.value).startswith("template line 3: in bcrypt: the template takes more than 1000000 steps")
    assert caught.value.reason == "TemplateLimitExceeded"


def test_what_honest_templates_do_is_within_the_limits() -> None:
    text = """
    {{ $ca := genCA "ca" 365 }}{{ $cert := genSignedCert "n" (list "192.0.2.1") (list "n") 365 $ca }}
    {{ genPrivateKey "rsa" | len }} {{ htpasswd "u" "p" | len }} {{ derivePassword 1 "long" "p" "u" "s" | len }}
    {{ range until 500 }}{{ printf "%d" . | indent 4 | quote }}{{ end }}
    {{ repeat 200000 "x" | b64enc | sha256sum }} {{ regexReplaceAll "[^a-z]+" (repeat 1000 "node-1 ") "-" | len }}
    """
    assert render(text, {})


def test_names_and_addresses_have_a_short_allowance() -> None:
    brief = {"steps": BRIEF_STEPS, "seconds": BRIEF_SECONDS}
    assert render("{{ range 50 }}{{ regexReplaceAll `a` `aaa` `b` }}{{ end }}", {}, **brief)  # type: ignore[arg-type]
    for text in ("{{ bcrypt `p` }}", "{{ genCA `a` 1 }}", "{{ genPrivateKey `rsa` }}", ATTACKS["uniq"]):
        began = time.thread_time()
        with pytest.raises(LimitError):
            render(text, {}, **brief)  # type: ignore[arg-type]
        assert time.thread_time() - began < 2 * BRIEF_SECONDS


def test_a_block_within_another_spends_of_both() -> None:
    with metered(100, 10):
        with metered(1000, 10):
            charge(90)
        with pytest.raises(LimitExceeded, match="more than 100 steps"), metered(1000, 10):
            charge(20)
    with metered(1000, 10):
        with metered(10, 10), pytest.raises(LimitExceeded, match="more than 10 steps"):
            charge(11)
        charge(900)
    charge(1 << 60)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"and", "or"}))
def test_no_function_takes_long_for_long_texts(name: str) -> None:
    function = FUNCTIONS[name]
    call = f"{{{{ {name}{' .t' * (len(function.params) or 2)} }}}}"
    began = time.thread_time()
    with contextlib.suppress(TemplateError, CallError):
        render(call, {"t": "aB 9%41\n- a: é" * 10_000}, output_cap=1 << 30, steps=STEPS // 5)
    assert time.thread_time() - began < 1
