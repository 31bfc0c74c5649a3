"""Certificates of webhooks: what is made, and when anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from ironbell.kube.serving_certificates import (
    AUTHORITY,
    AUTHORITY_KEY,
    AUTHORITY_LIFETIME,
    AUTHORITY_MARGIN,
    CERTIFICATE,
    KEY,
    LIFETIME,
    MARGIN,
    renewed,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
NAMES = ("x.ns.svc", "127.0.0.1")
DAY = timedelta(days=1)


def made(now: datetime = NOW) -> dict[str, bytes]:
    data = renewed({}, NAMES, now)
    assert data is not None
    return data


def authorities(data: dict[str, bytes]) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(data[AUTHORITY])


def leaf(data: dict[str, bytes]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(data[CERTIFICATE])


def test_what_is_made_is_signed_by_its_authority_and_good_for_the_names() -> None:
    data = made()
    assert set(data) == {AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY}
    leaf(data).verify_directly_issued_by(authorities(data)[0])
    names = leaf(data).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["x.ns.svc"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_nothing_is_made_while_all_is_well() -> None:
    data = made()
    assert renewed(data, NAMES, NOW + LIFETIME - MARGIN - DAY) is None
    assert renewed(data, NAMES[:1], NOW) is None


def test_a_certificate_is_renewed_before_it_expires_under_the_same_authority() -> None:
    data = made()
    after = renewed(data, NAMES, NOW + LIFETIME - MARGIN + DAY)
    assert after is not None
    assert after[AUTHORITY] == data[AUTHORITY]
    assert after[CERTIFICATE] != data[CERTIFICATE]
    leaf(after).verify_directly_issued_by(authorities(data)[0])


def test_a_renewed_authority_leaves_the_one_before_trusted_until_it_has_expired() -> None:
    data = made()
    late = NOW + AUTHORITY_LIFETIME - AUTHORITY_MARGIN + DAY
    after = renewed(data, NAMES, late)
    assert after is not None
    new, old = authorities(after)
    assert old == authorities(data)[0]
    leaf(after).verify_directly_issued_by(new)
    assert new.subject != old.subject
    final = renewed(after, NAMES, NOW + AUTHORITY_LIFETIME + DAY)
    assert final is not None
    assert authorities(final) == [new]


def test_another_name_needs_another_certificate() -> None:
    data = made()
    after = renewed(data, (*NAMES, "y.ns.svc"), NOW)
    assert after is not None
    assert after[AUTHORITY] == data[AUTHORITY]


@pytest.mark.parametrize("broken", [AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY])
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_cannot_be_used_is_made_anew(broken: str, content: bytes) -> None:
    data = renewed({**made(), broken: content}, NAMES, NOW)
    assert data is not None
    leaf(data).verify_directly_issued_by(authorities(data)[0])
    assert renewed(data, NAMES, NOW) is None
