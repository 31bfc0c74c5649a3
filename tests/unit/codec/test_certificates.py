"""Certificates state what their specification says, and chains of them are valid for OpenSSL's verifier."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.verification import PolicyBuilder, Store

from ironbell.codec.certificates import (
    CLIENT,
    SERVER,
    CertificateSpec,
    Constraints,
    Issuer,
    SigningKey,
    Usage,
    certificate_pem,
    general_names,
    issue,
    new_key,
    private_pem,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = NOW + timedelta(days=10)
AUTHORITY = CertificateSpec(
    common_name="authority",
    not_before=NOW,
    not_after=UNTIL,
    constraints=Constraints(is_authority=True, path_length=0),
    usage=Usage(signs_certificates=True),
    has_subject_identifier=True,
)
LEAF = CertificateSpec(
    common_name="leaf",
    organizations=("one", "two"),
    not_before=NOW,
    not_after=UNTIL,
    constraints=Constraints(),
    usage=Usage(enciphers_keys=True),
    purposes=(SERVER, CLIENT),
    alternatives=general_names(["host.example", "192.0.2.1", "host.example"]),
    has_authority_identifier=True,
)


@pytest.fixture(scope="module")
def authority() -> Issuer:
    key = new_key()
    return Issuer(issue(AUTHORITY, key), key)


def test_a_chain_is_valid_for_a_client(authority: Issuer) -> None:
    leaf = issue(LEAF, new_key(), authority)
    verifier = PolicyBuilder().store(Store([authority.certificate])).time(NOW + timedelta(days=1))
    chain = verifier.build_server_verifier(x509.DNSName("host.example")).verify(leaf, [])
    assert chain == [leaf, authority.certificate]
    with pytest.raises(x509.verification.VerificationError):
        verifier.build_server_verifier(x509.DNSName("other.example")).verify(leaf, [])


def test_a_certificate_states_its_specification(authority: Issuer) -> None:
    leaf = issue(LEAF, new_key(), authority)
    assert [str(name.value) for name in leaf.subject] == ["one", "two", "leaf"]
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (NOW, UNTIL)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["host.example"]
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.digital_signature, usage.value.key_encipherment, usage.value.key_cert_sign) == (
        True,
        True,
        False,
    )


def test_what_the_specification_leaves_out_is_left_out() -> None:
    bare = issue(CertificateSpec(common_name="", not_before=NOW, not_after=UNTIL), new_key())
    assert not list(bare.extensions)
    assert not list(bare.subject)


def test_the_issuer_s_own_key_identifier_is_repeated(authority: Issuer) -> None:
    own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    leaf = issue(LEAF, new_key(), authority)
    assert leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == own.digest


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "sha256"),
        (ec.generate_private_key(ec.SECP384R1()), "sha384"),
        (rsa.generate_private_key(65537, 2048), "sha256"),
        (ed25519.Ed25519PrivateKey.generate(), None),
    ],
    ids=["p256", "p384", "rsa", "ed25519"],
)
def test_the_digest_follows_the_key(key: SigningKey, digest: str | None) -> None:
    found = issue(AUTHORITY, key)
    found.verify_directly_issued_by(found)
    assert (found.signature_hash_algorithm.name if found.signature_hash_algorithm else None) == digest
    with pytest.raises((InvalidSignature, ValueError)):
        issue(LEAF, new_key()).verify_directly_issued_by(found)


def test_keys_and_certificates_are_written_in_pem(authority: Issuer) -> None:
    key = new_key()
    assert private_pem(key).startswith(b"-----BEGIN PRIVATE KEY-----")
    assert private_pem(key, traditional=True).startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert x509.load_pem_x509_certificate(certificate_pem(authority.certificate)) == authority.certificate
