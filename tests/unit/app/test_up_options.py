"""Options: file and command line together, errors by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.app.site.metadata_url import metadata_url
from ironbell.app.site.options import OptionsError, UpOptions, read_options
from ironbell.app.wire.config import WireConfig
from ironbell.contract.servers.boot_token import PLACEHOLDER


def test_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("data-dir: /from/file\ndhcp: proxy\ninterface: eth7\nartefacts: {images: /srv/images}\n")
    options = read_options(file, {"data_dir": "/given", "dhcp": None, "artefacts": None})
    assert (options.data_dir, options.dhcp, options.interface) == ("/given", "proxy", "eth7")
    assert options.artefacts == {"images": "/srv/images"}
    assert options.serves_machines


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    file = tmp_path / "c.yaml"
    file.write_text("data-dir: ~/site\nosie-dir: ~/osie\nartefacts: {images: ~/images}\n")
    options = read_options(file, {"lab": "~/lab.yaml"})
    assert (str(options.folder), options.osie_dir, options.lab) == ("/home/x/site", "/home/x/osie", "/home/x/lab.yaml")
    assert options.artefacts == {"images": "/home/x/images"}
    with pytest.raises(OptionsError, match="~nobody-of-that-name/site: this home folder does not exist"):
        read_options(None, {"data_dir": "~nobody-of-that-name/site"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "mapping"),
        ("data-dir: /x\ndhcp: bootp\n", "dhcp 'bootp'"),
        ("data-dir: /x\napi-port: many\n", "api-port"),
        ("data-dir: /x\nhttp-port: 70000\n", "http-port"),
        ("data-dir: /x\nfoo: 1\n", "foo"),
        ("data-dir: /x\nhistory: a while\n", "history: 'a while' is not a duration; write it as 1h or 30m"),
        ("data-dir: /x\nhistory: 30s\n", "history: '30s' is too short; keep at least 60 s"),
        ("data-dir: [", "c.yaml"),
    ],
)
def test_wrong_files(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(OptionsError, match=message):
        read_options(file, {})


def test_simulating_with_and_without_servers(tmp_path: Path) -> None:
    def options(**given: object) -> UpOptions:
        return read_options(None, {"data_dir": "/x", **given})

    assert (options(simulate=True).simulated_servers, options(simulate=True).serves_machines) == (0, False)
    simulated = options(simulate=300, simulate_speed="real")
    assert (simulated.simulated_servers, simulated.serves_machines, simulated.needs_root) == (300, True, False)
    assert metadata_url(simulated) == f"http://127.0.0.1:7080/t/{PLACEHOLDER}"
    assert metadata_url(options(simulate=300, identity="compat")) == "http://127.0.0.1:7080"
    file = tmp_path / "c.yaml"
    file.write_text("data-dir: /x\nsimulate: 3\n")
    assert read_options(file, {}).simulated_servers == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"simulate": 10_001}, "simulate must be between 1 and 10000"),
        ({"simulate": 0}, "simulate must be between 1 and 10000"),
        ({"simulate": 3, "lab": "/lab.yaml"}, "simulate with servers and lab exclude each other"),
        ({"simulate": 3, "interface": "eth0"}, "simulate with servers and interface exclude each other"),
        ({"simulate": 3, "simulate_speed": "slow"}, "simulate-speed 'slow' is unknown; use one of instant, real"),
        ({"simulate": True, "simulate_faults": "/f.yaml"}, "simulate-faults has no effect without servers"),
    ],
)
def test_what_cannot_be_simulated(given: dict[str, object], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        read_options(None, {"data_dir": "/x", **given})


def test_components_are_left_out_by_any_of_their_names() -> None:
    options = read_options(None, {"data_dir": "/x", "without": ("cacpk", "core")})
    assert options.without == ("cluster-api", "kubeadm-control-plane")
    assert read_options(None, {"data_dir": "/x", "without": None}).without == ()
    with pytest.raises(OptionsError, match="without: 'cappy' is not a component; known components: tink-controller"):
        read_options(None, {"data_dir": "/x", "without": ("cappy",)})
    with pytest.raises(OptionsError, match="without: smee has no controllers"):
        read_options(None, {"data_dir": "/x", "without": ("boots",)})


def test_api_alone_needs_no_servers() -> None:
    assert not read_options(None, {"data_dir": "/x"}).serves_machines


def test_netboot_settings_name_our_own_address_per_subnet() -> None:
    settings = WireConfig(folder="/x", http_port=8080, grpc_port=1).netboot_settings()
    assert settings.osie_url == "http://{address}:8080/osie"
    assert settings.grpc_authority == "{address}:1"


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 3600.0), ({"history": "5m"}, 300.0), ({"history": "1h30m"}, 5400.0)]
)
def test_history_is_a_duration(given: dict[str, str], seconds: float) -> None:
    assert read_options(None, {"data_dir": "/x", **given}).history_seconds == seconds
