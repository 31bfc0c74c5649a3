"""Key pairs of a cluster: what is in them, that they work together, and that what is broken is refused by name."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ironbell.contract import pki
from ironbell.contract.pki import KeyAlgorithm, KeyPair, PkiError, Subject

NOW = datetime.now(UTC).replace(microsecond=0)
P256 = KeyAlgorithm.ECDSA_P256

# made by openssl with `-set_serial 0`, as upstream's authorities are
SERIAL_ZERO = b"""-----BEGIN CERTIFICATE-----
MIIBbjCCARSgAwIBAgIBADAKBggqhkjOPQQDAjAVMRMwEQYDVQQDDAprdWJlcm5l
dGVzMCAXDTI2MTEyMjAwMTI0OVoYDzIxMjYxMDI5MDAxMjQ5WjAVMRMwEQYDVQQD
DAprdWJlcm5ldGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEkOkh2iMpepau
q6swZ6MUcK2ExdigF4wkFSYEsBz0SGdNyfkmLnBLCTrhLPlIuUjySzii6sYdLS3i
qaQOOedT36NTMFEwHQYDVR0OBBYEFEudzQ4SF9dCPuEAUfq2aZokIbc8MB8GA1Ud
IwQYMBaAFEudzQ4SF9dCPuEAUfq2aZokIbc8MA8GA1UdEwEB/wQFMAMBAf8wCgYI
KoZIzj0EAwIDSAAwRQIgRnUwaGjy/WG8i7CF5ctaYb77OLnp3hGnMAFH4ITTOx0C
IQD8NSGAYou3VtH0ZIm9eteeXhMKcvY6gQ4SNrLfqP216g==
-----END CERTIFICATE-----
"""
SERIAL_ZERO_KEY = b"""-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIGvOSW71qlFjYtDWj4mb1OKxUll2psicOlKRLXccLJmyoAoGCCqGSM49
AwEHoUQDQgAEkOkh2iMpepauq6swZ6MUcK2ExdigF4wkFSYEsBz0SGdNyfkmLnBL
CTrhLPlIuUjySzii6sYdLS3iqaQOOedT3w==
-----END EC PRIVATE KEY-----
"""


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return pki.create_authority(P256, NOW)


@pytest.mark.parametrize(
    ("algorithm", "header", "size"),
    [
        (KeyAlgorithm.RSA_2048, b"-----BEGIN RSA PRIVATE KEY-----", 2048),
        (KeyAlgorithm.ECDSA_P256, b"-----BEGIN EC PRIVATE KEY-----", 256),
        (KeyAlgorithm.ECDSA_P384, b"-----BEGIN EC PRIVATE KEY-----", 384),
    ],
)
def test_an_authority_is_what_kubeadm_expects(algorithm: KeyAlgorithm, header: bytes, size: int) -> None:
    pair = pki.create_authority(algorithm, NOW)
    assert pair.key.startswith(header)
    certificate, key = pki.usable(pair)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    assert key.key_size == size
    assert (
        certificate.subject == certificate.issuer == x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    )
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=3650)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert usage.value.digital_signature
    assert usage.value.key_encipherment
    assert not usage.value.crl_sign
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert certificate.serial_number > 0


def test_validity_of_an_authority_can_be_chosen() -> None:
    certificate, _ = pki.usable(pki.create_authority(P256, NOW, days=30))
    assert certificate.not_valid_after_utc == NOW + timedelta(days=30)


def test_openssl_verifies_what_an_authority_signs(authority: KeyPair, tmp_path: Path) -> None:
    subject = Subject("kubernetes-admin", ("system:masters",), ("api.example.org", "192.0.2.1"))
    for algorithm in (P256, KeyAlgorithm.ECDSA_P384):
        pair = pki.create_signed_pair(authority, subject, algorithm, NOW)
        (tmp_path / "ca.pem").write_bytes(authority.certificate)
        (tmp_path / "leaf.pem").write_bytes(pair.certificate)
        command = ["openssl", "verify", "-purpose", "sslclient", "-CAfile", "ca.pem", "leaf.pem"]
        assert (
            subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "leaf.pem: OK\n"
        )


@pytest.mark.parametrize("identifier", [b"sha-256-of-the-key", None])
def test_openssl_verifies_under_an_authority_with_an_identifier_of_another_making(
    identifier: bytes | None, authority: KeyPair, tmp_path: Path
) -> None:
    _, key = pki.usable(authority)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=1)).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    if identifier is not None:
        builder = builder.add_extension(x509.SubjectKeyIdentifier(identifier), critical=False)
    theirs = KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), authority.key)
    (tmp_path / "ca.pem").write_bytes(theirs.certificate)
    (tmp_path / "leaf.pem").write_bytes(
        pki.create_signed_pair(theirs, Subject("kube-apiserver"), P256, NOW).certificate
    )
    subprocess.run(["openssl", "verify", "-CAfile", "ca.pem", "leaf.pem"], cwd=tmp_path, check=True)


def test_a_client_certificate_says_who_it_is(authority: KeyPair) -> None:
    pair = pki.create_signed_pair(authority, Subject("kubernetes-admin", ("system:masters",)), P256, NOW)
    certificate, _ = pki.usable(pair)
    assert certificate.subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.not_valid_before_utc == pki.usable(authority)[0].not_valid_before_utc
    assert certificate.not_valid_after_utc == NOW + timedelta(hours=8760)
    assert pki.expires_at(pair.certificate) == NOW + timedelta(hours=8760)


def test_service_account_keys_are_a_public_and_a_private_key() -> None:
    pair = pki.create_service_account_keys(P256)
    assert pair.certificate.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert pair.key.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    pki.check_service_account_keys(pair)
    other = pki.create_service_account_keys(P256)
    with pytest.raises(PkiError, match="do not belong together"):
        pki.check_service_account_keys(KeyPair(pair.certificate, other.key))
    with pytest.raises(PkiError, match="no public key"):
        pki.check_service_account_keys(KeyPair(b"x", pair.key))


def test_hashes_are_of_every_public_key_in_a_bundle(authority: KeyPair, tmp_path: Path) -> None:
    other = pki.create_authority(P256, NOW)
    expected = []
    for number, pair in enumerate((authority, other)):
        path = tmp_path / f"{number}.pem"
        path.write_bytes(pair.certificate)
        key = subprocess.run(
            ["openssl", "x509", "-in", path, "-noout", "-pubkey"], capture_output=True, check=True
        ).stdout
        der = subprocess.run(
            ["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, capture_output=True, check=True
        )
        expected.append(f"sha256:{hashlib.sha256(der.stdout).hexdigest()}")
    assert pki.certificate_hashes(authority.certificate + other.certificate) == expected
    assert pki.first_certificate(authority.certificate + other.certificate) == authority.certificate


def test_authorities_made_by_upstream_have_serial_number_0_and_work() -> None:
    upstream = KeyPair(SERIAL_ZERO, SERIAL_ZERO_KEY)
    pki.check_pair(upstream)
    assert len(pki.certificate_hashes(SERIAL_ZERO)) == 1
    certificate, _ = pki.usable(pki.create_signed_pair(upstream, Subject("kubernetes-admin"), P256, NOW))
    assert certificate.issuer.rfc4514_string() == "CN=kubernetes"


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        (b"", None, "no certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", None, "no certificate"),
        (None, b"", "no unencrypted private key"),
        (None, b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no unencrypted private key"),
    ],
)
def test_broken_pairs_are_refused(
    authority: KeyPair, certificate: bytes | None, key: bytes | None, message: str
) -> None:
    broken = KeyPair(
        authority.certificate if certificate is None else certificate, authority.key if key is None else key
    )
    with pytest.raises(PkiError, match=message):
        pki.check_pair(broken)


def test_pairs_that_do_not_belong_together_are_refused(authority: KeyPair) -> None:
    with pytest.raises(PkiError, match="do not belong together"):
        pki.check_pair(KeyPair(authority.certificate, pki.create_authority(P256, NOW).key))


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    octets = size.to_bytes((size.bit_length() + 7) // 8 or 1)
    return bytes((tag,)) + (octets if size < 128 else bytes((0x80 | len(octets),)) + octets) + content


def rsa_pem(numbers: Sequence[int]) -> bytes:
    """A key as RFC 8017 appendix A.1.2 writes it: version, n, e, d, p, q, two exponents, a coefficient."""
    whole = b"".join(der(2, number.to_bytes(number.bit_length() // 8 + 1)) for number in numbers)
    text = base64.encodebytes(der(0x30, whole))
    return b"-----BEGIN RSA PRIVATE KEY-----\n" + text + b"-----END RSA PRIVATE KEY-----\n"


def test_rsa_keys_whose_numbers_do_not_fit_are_refused() -> None:
    pair = pki.create_authority(KeyAlgorithm.RSA_2048, NOW)
    key = serialization.load_pem_private_key(pair.key, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    has = key.private_numbers()
    numbers = [
        0, has.public_numbers.n, has.public_numbers.e, has.d, has.p, has.q, has.dmp1, has.dmq1, has.iqmp,
    ]  # fmt: skip
    pki.check_pair(KeyPair(pair.certificate, rsa_pem(numbers)))
    for place in range(1, len(numbers)):
        for other in (0, 1, numbers[place] ^ 1, numbers[place] + 2, numbers[place] >> 1):
            altered = [*numbers[:place], other, *numbers[place + 1 :]]
            with pytest.raises(PkiError):
                pki.check_pair(KeyPair(pair.certificate, rsa_pem(altered)))


def test_algorithms_are_named_as_in_the_api() -> None:
    assert pki.algorithm_of("") is KeyAlgorithm.RSA_2048
    assert pki.algorithm_of("ECDSA-P384") is KeyAlgorithm.ECDSA_P384
    with pytest.raises(PkiError, match="'DSA' is unknown; use RSA-2048, "):
        pki.algorithm_of("DSA")


def test_pairs_do_not_print_their_content(authority: KeyPair) -> None:
    assert repr(authority) == "KeyPair(***)"
