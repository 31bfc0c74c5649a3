"""Which kernel modules are carried."""

from __future__ import annotations

from ironbell.osie.modules import is_kept, module_name, parse_dependencies, parse_soft_dependencies, select

DEP = """\
kernel/drivers/net/ethernet/intel/igb/igb.ko: kernel/drivers/dca/dca.ko kernel/drivers/i2c/algos/i2c-algo-bit.ko
kernel/drivers/dca/dca.ko:
kernel/drivers/i2c/algos/i2c-algo-bit.ko:
kernel/fs/btrfs/btrfs.ko: kernel/lib/raid6/raid6_pq.ko.xz
kernel/lib/raid6/raid6_pq.ko.xz:
kernel/crypto/xor.ko:
kernel/sound/core/snd.ko: kernel/sound/soundcore.ko
kernel/sound/soundcore.ko:
kernel/drivers/net/wireless/ath/ath.ko:
kernel/drivers/platform/x86/thing.ko:
"""


def test_keeps_network_and_disks_with_what_they_need_and_drops_the_rest() -> None:
    soft = parse_soft_dependencies("# comment\nsoftdep btrfs pre: xor absent post: thing\n")
    kept = select(parse_dependencies(DEP), soft)
    assert {module_name(path) for path in kept} == {
        "igb", "dca", "i2c_algo_bit", "btrfs", "raid6_pq", "xor", "thing",
    }  # fmt: skip


def test_a_folder_is_not_confused_with_a_longer_name() -> None:
    assert is_kept("fs/ext4/ext4.ko")
    assert not is_kept("fs/ext4x/ext4.ko")
    assert is_kept("drivers/hid/hid.ko.zst")
    assert not is_kept("drivers/hid/hid-sony.ko")


def test_tests_of_the_kernel_are_dropped() -> None:
    assert not is_kept("lib/test_bpf.ko")
    assert is_kept("lib/crc-itu-t.ko")
