"""Actions that mount, partition, format and wipe, on loop devices."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ironbell.agent.actions import archive2disk
from ironbell.agent.messages import Power, ResultMessage

pytestmark = pytest.mark.root
MIB = 1 << 20


@contextlib.contextmanager
def mounted(device: str, point: Path) -> Iterator[Path]:
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", device, str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.fixture
def ext4(loop_disk) -> str:
    disk: str = loop_disk(24)
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    return disk


def a_file(disk: str, path: str, **changes: str) -> dict[str, str]:
    return {
        "DEST_DISK": disk,
        "FS_TYPE": "ext4",
        "DEST_PATH": path,
        "CONTENTS": "hello: wörld\n",
        "UID": "12",
        "GID": "34",
        "MODE": "0666",
        "DIRMODE": "0700",
        **changes,
    }


class TestWriteFile:
    def test_writes_contents_owner_and_modes_whatever_the_umask(self, ext4, run_action, tmp_path):
        old = os.umask(0o077)
        try:
            result = run_action("writefile", **a_file(ext4, "/etc/cloud/cloud.cfg.d/10.cfg"))
        finally:
            os.umask(old)
        assert result.status == 0, result.said
        with mounted(ext4, tmp_path / "m") as root:
            file = root / "etc/cloud/cloud.cfg.d/10.cfg"
            assert file.read_text() == "hello: wörld\n"
            status = file.stat()
            assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12, 34, 0o666)
            folder = (root / "etc/cloud").stat()
            assert (folder.st_uid, folder.st_gid, stat.S_IMODE(folder.st_mode)) == (12, 34, 0o700)
            assert [path.name for path in file.parent.iterdir()] == ["10.cfg"]

    def test_the_root_is_found_and_not_guessed(self, loop_disk, run_action, tmp_path):
        disk = loop_disk(64)
        table = "label: gpt\n2048,8MiB\n,16MiB\n,24MiB\n"
        subprocess.run(["sfdisk", "--quiet", disk], input=table, text=True, check=True)
        subprocess.run(["partx", "--update", disk], check=True)
        subprocess.run(["mkfs.vfat", f"{disk}p1"], check=True, capture_output=True)
        for number in (2, 3):
            subprocess.run(["mkfs.ext4", "-q", f"{disk}p{number}"], check=True)
        asked = a_file(disk, "/etc/x", DEST_PARTITION="root", FS_TYPE="")
        nothing = run_action("writefile", **asked)
        assert "has no operating system" in nothing.failure
        with mounted(f"{disk}p3", tmp_path / "m") as root:
            (root / "usr/lib").mkdir(parents=True)
            (root / "etc").mkdir()
            (root / "usr/lib/os-release").write_text("ID=x")
            (root / "etc/os-release").symlink_to("../usr/lib/os-release")
        result = run_action("writefile", **asked)
        assert result.status == 0, result.said
        with mounted(f"{disk}p3", tmp_path / "m") as root:
            assert (root / "etc/x").read_text() == "hello: wörld\n"
        with mounted(f"{disk}p2", tmp_path / "m") as root:
            (root / "etc").mkdir()
            (root / "etc/os-release").write_text("ID=y")
        assert "more than one operating system" in run_action("writefile", **asked).failure
        assert "DEST_PARTITION" in run_action("writefile", **{**asked, "DEST_PARTITION": "boot"}).failure

    def test_mode_holds_for_a_file_that_was_there(self, ext4, run_action, tmp_path):
        with mounted(ext4, tmp_path / "m") as root:
            (root / "x").write_text("old and longer than the new one")
            (root / "x").chmod(0o600)
        assert run_action("writefile", **a_file(ext4, "/x", MODE="755")).status == 0
        with mounted(ext4, tmp_path / "m") as root:
            assert (root / "x").read_text() == "hello: wörld\n"
            assert stat.S_IMODE((root / "x").stat().st_mode) == 0o755

    def test_links_never_lead_out_of_the_disk(self, ext4, run_action, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        with mounted(ext4, tmp_path / "m") as root:
            (root / "absolute").symlink_to(outside)
            (root / "up").symlink_to("../../../../../../../../" + str(outside))
            (root / "resolv.conf").symlink_to("/run/missing/stub")
            (root / "loop").symlink_to("loop")
        for path in ("/absolute/a", "/up/b", "/../../../c", "/resolv.conf"):
            result = run_action("writefile", **a_file(ext4, path))
            assert result.status == 0, (path, result.said)
        assert "too many symbolic links" in run_action("writefile", **a_file(ext4, "/loop/x")).failure
        assert list(outside.iterdir()) == []
        with mounted(ext4, tmp_path / "m") as root:
            assert (root / str(outside)[1:] / "a").exists()
            assert (root / "c").exists()

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"MODE": "9"}, "MODE"),
            ({"UID": "root"}, "UID"),
            ({"DEST_PATH": "relative"}, "DEST_PATH"),
            ({"FS_TYPE": "xfs"}, "has no xfs file system"),
            ({"FS_TYPE": "nofs"}, "cannot mount nofs"),
        ],
    )
    def test_says_what_is_wrong(self, ext4, run_action, changes, text):
        result = run_action("writefile", **a_file(ext4, "/x", **changes))
        assert result.status != 0
        assert text in result.failure

    def test_nothing_stays_mounted(self, ext4, run_action):
        run_action("writefile", **a_file(ext4, "/x"))
        assert ext4 not in Path("/proc/mounts").read_text()


def a_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", **fields: object) -> None:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.mode = kind, len(data), 0o640
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))

        add("./", tarfile.DIRTYPE, mode=0o755)
        add("lib/modules/", tarfile.DIRTYPE, mode=0o750, uid=1, gid=2)
        add("lib/modules/driver.ko", data=b"driver", uid=5, gid=6, mode=0o4755)
        add("lib/hard", tarfile.LNKTYPE, linkname="lib/modules/driver.ko")
        add("dev/console", tarfile.CHRTYPE, devmajor=5, devminor=1)
        add("soft", tarfile.SYMTYPE, linkname="/lib/modules")
        add("../../escape", data=b"x")
        add("capable", data=b"y", pax_headers={"SCHILY.xattr.user.note": "kept"})
        add("soft/through", data=b"z")
    return buffer.getvalue()


class TestArchive2Disk:
    def environment(self, web, disk: str, tar: bytes, **changes: str) -> dict[str, str]:
        return {
            "ARCHIVE_URL": web.url,
            "ARCHIVE_TYPE": "targz",
            "DEST_DISK": disk,
            "FS_TYPE": "ext4",
            "DEST_PATH": "/",
            "TARFILE_CHECKSUM": f"sha256:{hashlib.sha256(tar).hexdigest()}",
            **changes,
        }

    @pytest.mark.parametrize("compress", [bytes, gzip.compress])
    def test_restores_everything_and_never_leaves_the_disk(self, web, ext4, run_action, tmp_path, compress):
        tar = a_tar()
        web.body = compress(tar)
        with mounted(ext4, tmp_path / "m") as root:
            (root / "usr/lib").mkdir(parents=True)
            (root / "lib").symlink_to("usr/lib")
        result = run_action("archive2disk", **self.environment(web, ext4, tar))
        assert result.status == 0, result.said
        with mounted(ext4, tmp_path / "m") as root:
            assert (root / "lib").is_symlink(), "a link to a folder is kept and filled"
            driver = root / "usr/lib/modules/driver.ko"
            assert driver.read_bytes() == b"driver"
            status = driver.stat()
            assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (5, 6, 0o4755)
            assert (root / "usr/lib/hard").stat().st_ino == status.st_ino
            assert stat.S_ISCHR((root / "dev/console").lstat().st_mode)
            assert (root / "soft").readlink() == Path("/lib/modules")
            assert (root / "usr/lib/modules/through").read_bytes() == b"z"
            assert (root / "escape").read_bytes() == b"x"
            assert os.getxattr(root / "capable", "user.note") == b"kept"

    def test_unpacks_with_the_in_memory_oss_python(self, web, ext4, run_here, monkeypatch):
        """Python 3.11.2 has no argument `filter`."""
        extract = tarfile.TarFile.extract

        def of_old(self, member, path="", set_attrs=True, *, numeric_owner=False):
            return extract(self, member, path, set_attrs, numeric_owner=numeric_owner)

        monkeypatch.setattr(tarfile.TarFile, "extract", of_old)
        tar = a_tar()
        web.body = tar
        assert run_here(archive2disk.run, **self.environment(web, ext4, tar)).status == 0

    def test_the_check_sum_of_the_file_is_enough(self, web, ext4, run_action):
        web.body = gzip.compress(a_tar())
        of_file = {"TARFILE_CHECKSUM": "", "ARCHIVE_CHECKSUM": f"sha256:{hashlib.sha256(web.body).hexdigest()}"}
        assert run_action("archive2disk", **self.environment(web, ext4, b"", **of_file)).status == 0
        of_other = {**of_file, "ARCHIVE_CHECKSUM": f"sha256:{'0' * 64}"}
        assert "checksum" in run_action("archive2disk", **self.environment(web, ext4, b"", **of_other)).failure

    def test_a_wrong_check_sum_fails(self, web, ext4, run_action):
        web.body = a_tar()
        result = run_action("archive2disk", **self.environment(web, ext4, b"other"))
        assert result.status == 1
        assert "checksum" in result.failure

    def test_a_truncated_archive_fails(self, web, ext4, run_action):
        web.body = a_tar()[:2000]
        unchecked = {"TARFILE_CHECKSUM": "", "INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION": "true"}
        result = run_action("archive2disk", **self.environment(web, ext4, b"", **unchecked))
        assert "not a complete tar file" in result.failure

    def test_the_check_sum_is_required(self, web, ext4, run_action):
        result = run_action("archive2disk", **self.environment(web, ext4, b"", TARFILE_CHECKSUM=""))
        assert "TARFILE_CHECKSUM is not set" in result.failure

    def test_a_full_disk_is_said(self, web, ext4, run_action):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            info = tarfile.TarInfo("large")
            info.size = 40 * MIB
            archive.addfile(info, io.BytesIO(bytes([1]) * info.size))
        web.body = gzip.compress(buffer.getvalue(), 1)
        result = run_action("archive2disk", **self.environment(web, ext4, buffer.getvalue()))
        assert "No space left" in result.failure


class TestCexec:
    def root_with_shell(self, disk: str, point: Path) -> None:
        """The programs of this machine, made visible inside the disk's root by copying one static tree."""
        with mounted(disk, point) as root:
            (root / "bin").mkdir()
            (root / "etc").mkdir()
            for folder in ("usr/lib", "lib64", "lib"):
                (root / folder).mkdir(parents=True, exist_ok=True)
            found = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
            for word in found.split():
                if word.startswith("/"):
                    target = root / word[1:]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(Path(word).read_bytes())
                    target.chmod(0o755)
            shell = root / "bin/sh"
            shell.write_bytes(Path("/bin/sh").resolve().read_bytes())
            shell.chmod(0o755)
            (root / "bin/foreign").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(100))
            (root / "bin/foreign").chmod(0o755)

    def environment(self, disk: str, line: str, **changes: str) -> dict[str, str]:
        return {"BLOCK_DEVICE": disk, "FS_TYPE": "ext4", "CHROOT": "y", "CMD_LINE": line, **changes}

    def test_runs_a_line_inside_the_disk_s_system(self, ext4, run_action, tmp_path):
        self.root_with_shell(ext4, tmp_path / "m")
        shell = {"DEFAULT_INTERPRETER": "/bin/sh -c", "GREETING": "hello"}
        line = "echo $GREETING > /made; test -e /proc/self && echo visible; exit 0"
        result = run_action("cexec", **self.environment(ext4, line, **shell))
        assert result.status == 0, result.said
        assert "visible" in result.said
        with mounted(ext4, tmp_path / "m") as root:
            assert (root / "made").read_text() == "hello\n"
        assert ext4 not in Path("/proc/mounts").read_text()

    def test_failures_have_status_30_and_a_reason(self, ext4, run_action, tmp_path):
        self.root_with_shell(ext4, tmp_path / "m")
        shell = {"DEFAULT_INTERPRETER": "/bin/sh -c"}
        failed = run_action("cexec", **self.environment(ext4, "true hunter2; exit 7", **shell))
        assert (failed.status, "status 7" in failed.failure) == (30, True)
        assert "hunter2" not in failed.failure, "a command's arguments may hold a password"
        missing = run_action("cexec", **self.environment(ext4, "/bin/none"))
        assert (missing.status, "no program /bin/none" in missing.failure) == (30, True)
        foreign = run_action("cexec", **self.environment(ext4, "/bin/foreign"))
        assert (foreign.status, "architecture" in foreign.failure) == (30, True)

    def test_lends_name_servers_and_leaves_the_disk_s_file_alone(self, ext4, run_action, tmp_path):
        self.root_with_shell(ext4, tmp_path / "m")
        with mounted(ext4, tmp_path / "m") as root:
            (root / "etc/resolv.conf").write_text("own\n")
        line = "while read line; do echo $line; done < /etc/resolv.conf"
        shell = {"DEFAULT_INTERPRETER": "/bin/sh -c", "UPDATE_RESOLV_CONF": "true"}
        result = run_action("cexec", **self.environment(ext4, line, **shell))
        assert result.status == 0, result.said
        with mounted(ext4, tmp_path / "m") as root:
            assert (root / "etc/resolv.conf").read_text() == "own\n"

    def test_missing_and_bad_values_have_their_status(self, ext4, run_action):
        assert run_action("cexec", BLOCK_DEVICE=ext4, FS_TYPE="ext4").status == 20
        assert run_action("cexec", **self.environment(ext4, " ; ")).status == 10


class TestKexec:
    def test_says_what_is_missing_on_the_disk(self, ext4, run_action):
        result = run_action("kexec", BLOCK_DEVICE=ext4, FS_TYPE="ext4")
        assert "boot/grub/grub.cfg does not exist" in result.failure
        result = run_action("kexec", BLOCK_DEVICE=ext4, FS_TYPE="ext4", KERNEL_PATH="/vmlinuz")
        assert "/vmlinuz does not exist" in result.failure


class TestWipe:
    @pytest.mark.parametrize("method", ["quick", "zero"])
    def test_signatures_are_gone(self, ext4, run_action, method):
        with Path(ext4).open("r+b") as file:
            file.seek(-MIB, os.SEEK_END)
            file.write(b"backup table" * 10)
        result = run_action("wipe", DEST_DISK=ext4, WIPE_METHOD=method)
        assert result.status == 0, result.said
        data = Path(ext4).read_bytes()
        assert data[: 4 * MIB] == bytes(4 * MIB)
        assert data[-MIB:] == bytes(MIB)
        if method == "zero":
            assert not any(data)
        (told,) = [note.message for note in result.notes if isinstance(note, ResultMessage)]
        assert told.startswith(f"wiped {ext4} (25.2 MB")
        assert ("zeros everywhere" if method == "zero" else "at the ends") in told

    def test_partitions_own_signatures_are_gone_too(self, loop_disk, run_action):
        disk = loop_disk(64)
        subprocess.run(["sfdisk", "--quiet", disk], input="label: gpt\n40960,\n", text=True, check=True)
        subprocess.run(["partx", "--update", disk], check=True)
        subprocess.run(["mkfs.ext4", "-q", f"{disk}p1"], check=True)
        result = run_action("wipedisk", DEST_DISK=disk)
        assert result.status == 0, result.said
        with Path(disk).open("rb") as file:
            file.seek(40960 * 512)
            assert file.read(MIB) == bytes(MIB)
        assert not Path(f"{disk}p1").exists()

    def test_a_mounted_disk_is_refused(self, ext4, run_action, tmp_path):
        with mounted(ext4, tmp_path / "m"):
            assert "is mounted" in run_action("wipe", DEST_DISK=ext4).failure
            assert "is mounted" in run_action("wipe", DEST_DISK=ext4, WIPE_METHOD="complete").failure

    def test_an_unknown_method_is_refused(self, ext4, run_action):
        assert "WIPE_METHOD" in run_action("wipe", DEST_DISK=ext4, WIPE_METHOD="burn").failure


class TestRootio:
    def metadata(self, tmp_path: Path, disk: str, **storage: object) -> dict[str, str]:
        layout = {
            "disks": [
                {
                    "device": disk,
                    "wipe_table": True,
                    "partitions": [
                        {"label": "BIOS", "number": 1, "size": 4096},
                        {"label": "SWAP", "number": 2, "size": 8192},
                        {"label": "ROOT", "number": 3, "size": 0},
                    ],
                }
            ],
            "filesystems": [
                {"mount": {"device": f"{disk}p2", "format": "swap", "point": "swap"}},
                {
                    "mount": {
                        "device": f"{disk}p3",
                        "format": "ext4",
                        "point": "/",
                        "create": {"options": ["-L", "ROOTFS"]},
                    }
                },
            ],
            **storage,
        }
        path = tmp_path / "metadata.json"
        path.write_bytes(msgspec.json.encode({"metadata": {"instance": {"storage": layout}}}))
        return {"JSON_FILE": str(path)}

    def test_partitions_and_formats_as_the_metadata_says(self, loop_disk, run_action, tmp_path):
        disk = loop_disk(64)
        variables = self.metadata(tmp_path, disk)
        result = run_action("rootio", "partition", **variables)
        assert result.status == 0, result.said
        assert all(Path(f"{disk}p{number}").exists() for number in (1, 2, 3))
        result = run_action("rootio", "format", **variables)
        assert result.status == 0, result.said
        found = subprocess.run(["blkid", f"{disk}p2", f"{disk}p3"], capture_output=True, text=True, check=True).stdout
        assert 'TYPE="swap"' in found
        assert 'LABEL="ROOTFS"' in found
        assert run_action("rootio", "wipe", **variables).status == 0
        assert not Path(f"{disk}p1").exists()

    def test_failures_fail(self, loop_disk, run_action, tmp_path):
        disk = loop_disk(16)
        bad = {"filesystems": [{"mount": {"device": disk, "format": "zfs"}}]}
        result = run_action("rootio", "format", **self.metadata(tmp_path, disk, **bad))
        assert result.status == 1
        assert "not one of ext2" in result.failure
        too_large = [{"device": disk, "partitions": [{"label": "X", "size": 1 << 30}]}]
        result = run_action("rootio", "partition", **self.metadata(tmp_path, disk, disks=too_large))
        assert result.status == 1
        assert "sfdisk" in result.failure
        assert "METADATA_SERVICE_PORT" in run_action("rootio", "wipe", MIRROR_HOST="127.0.0.1:1x").failure
        assert run_action("rootio", "dance", **self.metadata(tmp_path, disk)).status == 10


def test_reboot_and_poweroff_only_ask_for_it(run_action):
    assert run_action("reboot").after.power is Power.REBOOT
    assert run_action("poweroff", WAIT_SECONDS="9").after.delay_s == 9
    assert run_action("reboot", WAIT_SECONDS="soon").status == 10


@pytest.mark.parametrize("action", ["reboot", "poweroff"])
def test_another_machine_keeps_running(run_action, action):
    result = run_action(action, IRONBELL_MACHINE_MAC="02:00:00:00:00:99")
    assert (result.status, result.after) == (1, None)
    assert "rejected; correct the Hardware" in result.failure
