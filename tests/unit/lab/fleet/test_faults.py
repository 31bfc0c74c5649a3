"""Files of faults: what they say, and what is wrong with them by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.base.randomness import SeededRandomness
from ironbell.lab.fleet.faults import Faults, FaultsFileError, parse, read, strikes


def test_servers_differ_in_what_is_said_of_them(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        "all: {bmc-unreachable: 0.1, slow-boot-seconds: 5}\n"
        "servers:\n  sim-0002: {bmc-unreachable: 1, slow-boot: 0.5}\n"
    )
    file = read(path)
    assert file.of("sim-0001") == Faults(bmc_unreachable=0.1, slow_boot_seconds=5)
    assert file.of("sim-0002") == Faults(bmc_unreachable=1, slow_boot=0.5, slow_boot_seconds=5)


def test_an_empty_file_is_no_faults() -> None:
    assert parse(None).of("sim-0001") == Faults()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"all": {"bmc-unreachable": 2}}, r"<= 1.*all\.bmc-unreachable"),
        ({"all": {"bmc-unreachble": 1}}, "unknown field `bmc-unreachble`"),
        ({"every": {}}, "unknown field `every`"),
        ({"servers": {"sim-0001": {"slow-boot": "often"}}}, r"servers\.sim-0001: .*slow-boot"),
        (["all"], "Expected `object`"),
    ],
)
def test_wrong_files_name_the_field(document: object, message: str) -> None:
    with pytest.raises(FaultsFileError, match=message):
        parse(document)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FaultsFileError, match=r"there is no file .*none\.yaml; give the file that holds faults"):
        read(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("all: [")
    with pytest.raises(FaultsFileError, match=r"bad\.yaml"):
        read(tmp_path / "bad.yaml")


def test_a_rate_is_a_share() -> None:
    randomness = SeededRandomness(1)
    struck = sum(strikes(0.25, randomness) for _ in range(4000))
    assert 900 < struck < 1100
    assert not any(strikes(0.0, randomness) for _ in range(100))
    assert all(strikes(1.0, randomness) for _ in range(100))
