"""Functions whose results differ each time: what they make works."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ironbell.codec.gotemplate import TemplateError, render


def test_encrypted_text_can_be_decrypted() -> None:
    assert render("{{ encryptAES `key` `plain é` | decryptAES `key` }}", {}) == "plain é"


def test_text_encrypted_by_sprig_can_be_decrypted() -> None:
    text = "30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ="
    assert render(f"{{{{ decryptAES `secretkey` `{text}` }}}}", {}) == "plaintext"


@pytest.mark.parametrize(("kind", "begin"), [("ecdsa", "EC PRIVATE"), ("ed25519", "PRIVATE")])
def test_private_keys_can_be_loaded(kind: str, begin: str) -> None:
    text = render(f"{{{{ genPrivateKey `{kind}` }}}}", {})
    assert text.startswith(f"-----BEGIN {begin} KEY-----")
    serialization.load_pem_private_key(text.encode(), password=None)


def test_certificates_are_signed_by_their_authority() -> None:
    template = (
        "{{ $ca := genCAWithKey `root` 365 (genPrivateKey `ecdsa`) }}"
        "{{ $c := genSignedCertWithKey `host` (list `10.0.0.1`) (list `a.example`) 30 $ca (genPrivateKey `ecdsa`) }}"
        "{{ $ca.Cert }}{{ $c.Cert }}"
    )
    authority, certificate = x509.load_pem_x509_certificates(render(template, {}).encode())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]


def test_bcrypt_hashes_with_cost_ten() -> None:
    assert render("{{ htpasswd `u` `p` }}", {}).startswith("u:$2a$10$")
    assert "exceeds 72 bytes" in render("{{ bcrypt (repeat 73 `a`) }}", {})


def test_derived_passwords_are_master_passwords() -> None:
    assert render('{{ derivePassword 1 "long" "password" "user" "example.com" }}', {}) == "ZedaFaxcZaso9*"


def test_random_functions_stay_in_their_range() -> None:
    assert render("{{ $n := randInt 3 5 }}{{ or (eq $n 3) (eq $n 4) }}", {}) == "true"
    assert sorted(render("{{ shuffle `abc` }}", {})) == ["a", "b", "c"]
    with pytest.raises(TemplateError):
        render("{{ randInt 5 5 }}", {})
