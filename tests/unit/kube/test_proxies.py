"""Which servers are reached through a proxy of the environment."""

from __future__ import annotations

import pytest

from ironbell.kube.transport.proxies import checked_proxy, environment_proxy, is_direct
from ironbell.kube.transport.tokens import ConnectionConfigError


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("api.example.com", "", False),
        ("api.example.com", "*", True),
        ("api.example.com", "example.com", True),
        ("example.com", "example.com", True),
        ("myexample.com", "example.com", False),
        ("api.example.com", " .example.com , x", True),
        ("example.com", ".example.com", False),
        ("API.example.com.", "*.Example.com", True),
        ("api.example.com", "example.com:6443", True),
        ("api.example.com", "example.com:443", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8,nonsense/x", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:6443", True),
        ("10.1.2.30", "10.1.2.3", False),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "[fd00::1]:6443", True),
        ("fd00::1", "fd00::2", False),
        ("localhost", "", True),
        ("127.0.0.1", "", True),
        ("::1", "", True),
    ],
)
def test_no_proxy(host: str, no_proxy: str, direct: bool) -> None:
    assert is_direct(host, 6443, no_proxy) is direct


def test_the_scheme_of_the_server_says_which_variable_counts() -> None:
    environment = {"https_proxy": "http://secure:3128", "HTTP_PROXY": "plain:3128"}
    assert environment_proxy("https://h:6443", environment) == "http://secure:3128"
    assert environment_proxy("http://h:8080", environment) == "http://plain:3128"
    assert environment_proxy("https://h:6443", {"HTTP_PROXY": "http://p"}) == ""
    assert environment_proxy("https://h:6443", {**environment, "NO_PROXY": "h"}) == ""


@pytest.mark.parametrize("text", ["socks5://u:hush@p:1", "http://", "http://u:hush@[::/"])
def test_an_unusable_proxy_is_named_without_its_password(text: str) -> None:
    with pytest.raises(ConnectionConfigError, match="HTTPS_PROXY") as caught:
        checked_proxy(text, where="HTTPS_PROXY")
    assert "hush" not in str(caught.value)
