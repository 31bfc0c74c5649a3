"""The authority keeps, renews and refuses."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from ironbell.apiserver.access.kubeconfig import Credentials, kubeconfig, write_kubeconfig
from ironbell.apiserver.access.pki import Authority, PkiError, subject
from ironbell.base.clock import ManualClock
from ironbell.codec import goyaml

ADDRESSES = ["127.0.0.1", "localhost", "::1", "10.0.0.1", "api.example.org"]


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(wall=datetime(2026, 1, 1, tzinfo=UTC))


def test_everything_is_made_once_and_private(tmp_path: Path, clock: ManualClock) -> None:
    folder = tmp_path / "pki"
    authority = Authority(folder, clock)
    created = (
        authority.server(ADDRESSES).certificate.read_bytes(),
        authority.client("a", ["g"]).certificate.read_bytes(),
    )
    again = Authority(folder, clock)
    assert again.certificate_pem == authority.certificate_pem
    assert created == (
        again.server(ADDRESSES).certificate.read_bytes(),
        again.client("a", ["g"]).certificate.read_bytes(),
    )
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_server_is_known_by_all_its_addresses(tmp_path: Path, clock: ManualClock) -> None:
    certificate = read(Authority(tmp_path, clock).server(ADDRESSES).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert sorted(str(name.value) for name in names) == sorted(ADDRESSES)


def test_a_new_address_gives_a_new_certificate_and_fewer_do_not(tmp_path: Path, clock: ManualClock) -> None:
    authority = Authority(tmp_path, clock)
    first = authority.server(ADDRESSES).certificate.read_bytes()
    assert authority.server(ADDRESSES[:2]).certificate.read_bytes() == first
    assert authority.server([*ADDRESSES, "10.0.0.2"]).certificate.read_bytes() != first


def test_leaves_are_renewed_before_they_expire(tmp_path: Path, clock: ManualClock) -> None:
    first = Authority(tmp_path, clock).client("a").certificate.read_bytes()
    clock.advance(timedelta(days=290).total_seconds())
    assert Authority(tmp_path, clock).client("a").certificate.read_bytes() == first
    clock.advance(timedelta(days=30).total_seconds())
    assert Authority(tmp_path, clock).client("a").certificate.read_bytes() != first


def test_a_renewed_authority_is_still_trusted_by_old_clients(tmp_path: Path, clock: ManualClock) -> None:
    old = read(Authority(tmp_path, clock).certificate_path)
    clock.advance(timedelta(days=3500).total_seconds())
    authority = Authority(tmp_path, clock)
    assert read(authority.certificate_path).serial_number != old.serial_number
    read(authority.server(ADDRESSES).certificate).verify_directly_issued_by(old)


def test_other_groups_give_a_new_client_certificate(tmp_path: Path, clock: ManualClock) -> None:
    authority = Authority(tmp_path, clock)
    authority.client("a", ["one"])
    assert subject(read(authority.client("a", ["two", "three"]).certificate)) == ("a", ("two", "three"))


def test_client_names_do_not_escape_the_folder(tmp_path: Path, clock: ManualClock) -> None:
    pair = Authority(tmp_path, clock).client("../../system:node")
    assert pair.certificate.parent == tmp_path
    assert subject(read(pair.certificate))[0] == "../../system:node"


@pytest.mark.parametrize("name", ["ca.key", "ca.crt"])
def test_broken_files_are_reported_and_kept(tmp_path: Path, clock: ManualClock, name: str) -> None:
    Authority(tmp_path, clock)
    (tmp_path / name).write_text("broken")
    with pytest.raises(PkiError, match=name):
        Authority(tmp_path, clock)
    assert (tmp_path / name).read_text() == "broken"


def test_a_foreign_authority_key_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    Authority(tmp_path / "a", clock)
    Authority(tmp_path / "b", clock)
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(PkiError, match="do not belong together"):
        Authority(tmp_path / "a", clock)


def test_openssl_accepts_the_files(tmp_path: Path, clock: ManualClock) -> None:
    authority = Authority(tmp_path, clock)
    pair = authority.server(ADDRESSES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(cadata=authority.certificate_pem.decode())


def test_kubeconfig_holds_all_that_a_client_needs(tmp_path: Path, clock: ManualClock) -> None:
    authority = Authority(tmp_path / "pki", clock)
    credentials = Credentials(certificate=authority.client("admin", ["system:masters"]))
    content = kubeconfig(
        server="https://127.0.0.1:6443", authority_pem=authority.certificate_pem, user="admin",
        credentials=credentials, name="ironbell",
    )  # fmt: skip
    path = write_kubeconfig(tmp_path / "kubeconfig", content)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = goyaml.load(path.read_bytes())
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert set(document["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert document["contexts"][0]["context"]["user"] == "admin"
    assert document["current-context"] == "ironbell"


def test_token_credentials_never_print(tmp_path: Path) -> None:
    credentials = Credentials(token="s3cret")
    assert "s3cret" not in repr(credentials)
    content = kubeconfig(server="http://x", authority_pem=b"", user="u", credentials=credentials, name="n")
    assert goyaml.load(content)["users"][0]["user"] == {"token": "s3cret"}
