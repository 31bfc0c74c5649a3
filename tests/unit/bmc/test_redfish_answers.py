"""What a service says, whatever it says, becomes one line and a path of its own."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.bmc.driver import MalformedResponseError
from ironbell.bmc.redfish.http import Endpoint, message_of, own_path

_KEYS = st.sampled_from(["error", "message", "@Message.ExtendedInfo", "Message", "Severity"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["error", "x"]), _JSON))
def test_any_error_document_gives_one_short_line(document: dict[str, object]) -> None:
    message = message_of(document)
    assert "\n" not in message
    assert len(message) <= 300


def test_the_most_severe_message_is_taken() -> None:
    entries = [{"Message": "a", "Severity": "Warning"}, {"Message": "b", "Severity": "Critical"}, {"Message": "c"}]
    assert message_of({"error": {"message": "general", "@Message.ExtendedInfo": entries}}) == "b"
    assert message_of({"error": {"message": "general"}}) == "general"


@pytest.mark.parametrize(
    ("link", "path"),
    [("/redfish/v1/Systems/1", "/redfish/v1/Systems/1"), ("https://other/redfish/v1/x?y=1", "/redfish/v1/x?y=1"),
     ("/redfish/v1/x?url=http://y", "/redfish/v1/x?url=http://y")],
)  # fmt: skip
def test_links_are_taken_for_their_path(link: str, path: str) -> None:
    assert own_path(link) == path


@given(st.text())
def test_any_link_is_a_path_or_refused(link: str) -> None:
    with contextlib.suppress(MalformedResponseError):
        path = own_path(link)
        assert path.startswith("/")
        assert not path.startswith("//")


def test_addresses_of_version_six_are_bracketed() -> None:
    assert Endpoint("2001:db8::1").url == "https://[2001:db8::1]:443"
    assert Endpoint("bmc.example", port=8443).url == "https://bmc.example:8443"
    assert "secret" not in repr(Endpoint("h", username="u", password="secret"))
