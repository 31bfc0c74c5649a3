"""Lists: which version they show, and pages at one version while writes go on."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import names, refusal, secret, thing

PARSE = 'strconv.ParseUint: parsing "{0}": invalid syntax'
MATCH = "resourceVersionMatch"
MATCH_ALONE = "resourceVersionMatch is forbidden unless resourceVersion is provided"
MATCH_PAGE = "resourceVersionMatch is forbidden when continue is provided"


@pytest.fixture
def secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def fill(api: KubeApi, path: str, count: int = 5) -> None:
    for number in range(count):
        api.made(path, secret(f"s{number}", {"labels": {"n": str(number)}}))


def version(api: KubeApi, path: str) -> str:
    return str(api.get(path).json["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ({"resourceVersionMatch": "Exact"}, [("resourceVersionMatch", f"Forbidden: {MATCH_ALONE}")]),
        ({"resourceVersionMatch": "NotOlderThan"}, [("resourceVersionMatch", f"Forbidden: {MATCH_ALONE}")]),
        (
            {"resourceVersionMatch": "Bogus", "resourceVersion": "1"},
            [("resourceVersionMatch", 'Unsupported value: "Bogus": supported values: "Exact", "NotOlderThan", ""')],
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            [
                (
                    "resourceVersionMatch",
                    'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
                )
            ],
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "5", "continue": "x"},
            [("resourceVersionMatch", f"Forbidden: {MATCH_PAGE}")],
        ),
        (
            {"resourceVersionMatch": "NotOlderThan", "continue": "x"},
            [
                ("resourceVersionMatch", f"Forbidden: {MATCH_ALONE}"),
                ("resourceVersionMatch", f"Forbidden: {MATCH_PAGE}"),
            ],
        ),
        (
            {"sendInitialEvents": "true"},
            [("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")],
        ),
    ],
)
def test_options_that_do_not_go_together(
    api: KubeApi, secrets: str, query: dict[str, str], faults: list[tuple[str, str]]
) -> None:
    answer = api.get(secrets, **query)
    texts = [f"{field}: {text}" for field, text in faults]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert refusal(answer) == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {listed}')
    assert (answer.json["details"]["group"], answer.json["details"]["kind"]) == ("meta.k8s.io", "ListOptions")
    assert [(cause["field"], cause["message"]) for cause in answer.causes] == faults


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {"resourceVersion": "abc"},
            f'invalid resource version: resourceVersion: Invalid value: "abc": {PARSE.format("abc")}',
        ),
        (
            {"resourceVersion": "-1"},
            f'invalid resource version: resourceVersion: Invalid value: "-1": {PARSE.format("-1")}',
        ),
        ({"limit": "abc"}, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ({"timeoutSeconds": "abc"}, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ({"limit": "9" * 30}, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
    ],
)
def test_malformed_options(api: KubeApi, secrets: str, query: dict[str, str], message: str) -> None:
    assert refusal(api.get(secrets, **query)) == (400, "BadRequest", message)


@pytest.mark.parametrize("match", ["", "NotOlderThan", "Exact"])
def test_a_version_that_has_not_come(api: KubeApi, secrets: str, match: str) -> None:
    answer = api.get(secrets, resourceVersion="999999999", **({"resourceVersionMatch": match} if match else {}))
    status, reason, message = refusal(answer)
    assert (status, reason) == (504, "Timeout")
    assert message.startswith("Timeout: Too large resource version: 999999999, current: ")
    assert answer.causes == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert answer.json["details"]["retryAfterSeconds"] == 1


def test_without_a_version_what_was_written_is_there(api: KubeApi, secrets: str) -> None:
    for number in range(10):
        made = api.made(secrets, secret(f"s{number}"))
        answer = api.get(secrets)
        assert len(names(answer)) == number + 1
        assert int(answer.json["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


def test_not_older_than_shows_what_was_written(api: KubeApi, secrets: str) -> None:
    made = api.made(secrets, secret())
    answer = api.get(secrets, resourceVersion=made["metadata"]["resourceVersion"], resourceVersionMatch="NotOlderThan")
    assert names(answer) == ["one"]


def test_exact_shows_the_past(api: KubeApi, secrets: str) -> None:
    fill(api, secrets, 2)
    before = version(api, secrets)
    api.delete(f"{secrets}/s0")
    api.patch(f"{secrets}/s1", {"metadata": {"labels": {"n": "changed"}}})
    api.made(secrets, secret("s2"))
    answer = api.get(secrets, resourceVersion=before, resourceVersionMatch="Exact")
    assert names(answer) == ["s0", "s1"]
    assert answer.json["items"][1]["metadata"]["labels"] == {"n": "1"}
    assert answer.json["metadata"]["resourceVersion"] == before


def test_a_page_of_a_version_is_of_that_very_version(api: KubeApi, secrets: str) -> None:
    fill(api, secrets, 3)
    before = version(api, secrets)
    api.delete(f"{secrets}/s0")
    answer = api.get(secrets, resourceVersion=before, limit=2)
    assert (names(answer), answer.json["metadata"]["resourceVersion"]) == (["s0", "s1"], before)


def test_pages_show_the_version_of_the_first(api: KubeApi, secrets: str) -> None:
    fill(api, secrets)
    first = api.get(secrets, limit=2)
    assert first.json["metadata"]["remainingItemCount"] == 3
    api.made(secrets, secret("s1a"))
    api.delete(f"{secrets}/s3")
    api.patch(f"{secrets}/s2", {"metadata": {"labels": {"n": "changed"}}})
    second = api.get(secrets, limit=2, **{"continue": first.json["metadata"]["continue"]})
    third = api.get(secrets, limit=2, **{"continue": second.json["metadata"]["continue"]})
    assert [names(page) for page in (first, second, third)] == [["s0", "s1"], ["s2", "s3"], ["s4"]]
    assert second.json["items"][0]["metadata"]["labels"] == {"n": "2"}
    assert {page.json["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first.json["metadata"]["resourceVersion"]
    }
    assert second.json["metadata"]["remainingItemCount"] == 1
    assert "continue" not in third.json["metadata"]
    assert "remainingItemCount" not in third.json["metadata"]


def test_a_list_can_go_on_without_a_limit(api: KubeApi, secrets: str) -> None:
    fill(api, secrets)
    token = api.get(secrets, limit=2).json["metadata"]["continue"]
    rest = api.get(secrets, **{"continue": token})
    assert names(rest) == ["s2", "s3", "s4"]
    assert "continue" not in rest.json["metadata"]


def test_with_a_selector_nobody_knows_how_many_remain(api: KubeApi, secrets: str) -> None:
    fill(api, secrets)
    answer = api.get(secrets, limit=2, labelSelector="n!=0")
    assert names(answer) == ["s1", "s2"]
    assert "remainingItemCount" not in answer.json["metadata"]
    assert answer.json["metadata"]["continue"]


@pytest.mark.parametrize("limit", [0, -1, 5, 100])
def test_a_list_that_fits_has_no_further_page(api: KubeApi, secrets: str, limit: int) -> None:
    fill(api, secrets)
    answer = api.get(secrets, limit=limit)
    assert len(names(answer)) == 5
    assert "continue" not in answer.json["metadata"]


@pytest.mark.parametrize("more", [{}, {"resourceVersionMatch": "NotOlderThan"}])
def test_version_zero_has_no_pages(api: KubeApi, secrets: str, more: dict[str, Any]) -> None:
    fill(api, secrets)
    version(api, secrets)
    answer = api.get(secrets, limit=2, resourceVersion="0", **more)
    assert "continue" not in answer.json["metadata"]


@pytest.mark.parametrize("more", [{}, {"resourceVersion": "5"}])
def test_a_token_that_is_none(api: KubeApi, secrets: str, more: dict[str, Any]) -> None:
    status, reason, message = refusal(api.get(secrets, **{"continue": "x"}, **more))
    assert (status, reason) == (400, "BadRequest")
    assert message.startswith("invalid continue token: continue key is not valid: ")


def test_a_token_and_a_version_do_not_go_together(api: KubeApi, secrets: str) -> None:
    fill(api, secrets)
    page = api.get(secrets, limit=2).json["metadata"]
    answer = api.get(secrets, **{"continue": page["continue"], "resourceVersion": page["resourceVersion"]})
    assert refusal(answer) == (
        400,
        "BadRequest",
        "specifying resource version is not allowed when using continue",
    )


def test_lists_of_all_namespaces_go_by_namespace_and_name(api: KubeApi, secrets: str, namespace: str) -> None:
    fill(api, secrets, 2)
    found = [
        (item["metadata"]["namespace"], item["metadata"]["name"]) for item in api.get("/api/v1/secrets").json["items"]
    ]
    assert found == sorted(found)
    assert (namespace, "s1") in found


def test_an_empty_list_has_items_and_a_version(api: KubeApi, secrets: str) -> None:
    answer = api.get(secrets)
    assert answer.json["items"] == []
    assert (answer.json["kind"], answer.json["apiVersion"]) == ("SecretList", "v1")
    assert int(answer.json["metadata"]["resourceVersion"]) > 0


def test_a_namespace_that_is_not_there_has_an_empty_list(api: KubeApi) -> None:
    assert names(api.get("/api/v1/namespaces/nowhere-at-all/secrets")) == []


@pytest.mark.parametrize("first", ["apiVersion", "kind"])
def test_items_of_builtin_kinds_do_not_say_what_they_are(api: KubeApi, secrets: str, things: str, first: str) -> None:
    value = secret("s") if first == "kind" else {"apiVersion": "v1", **secret("s")}
    api.made(secrets, value)
    (item,) = api.get(secrets).json["items"]
    assert not {"kind", "apiVersion"} & item.keys()
    whole = api.get(f"{secrets}/s").json
    assert item == {name: part for name, part in whole.items() if name not in ("kind", "apiVersion")}
    api.made(things, thing())
    assert {item["kind"] for item in api.get(things).json["items"]} == {"Thing"}
