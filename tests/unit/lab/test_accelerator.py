"""Whether a machine that was tried with KVM still runs."""

import pytest

from ironbell.lab.accelerator import still_runs


@pytest.mark.parametrize(
    ("answers", "runs"),
    [
        (b'{"QMP": {}}\n{"return": {}}\n{"return": {"status": "running", "running": true}}\n{"return": {}}\n', True),
        (b'{"return": {"status": "internal-error", "singlestep": false, "running": false}}\n', False),
        (b"qemu-system-x86_64: failed to initialize kvm\n", False),
        (b'{"return": []}\n[1]\nnull\n\xff\n', False),
        (b"", False),
    ],
)
def test_only_a_machine_that_says_that_it_runs_does(answers: bytes, runs: bool) -> None:
    assert still_runs(answers) is runs
