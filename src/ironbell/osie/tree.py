"""Builds the small tree of the in-memory OS from unpacked Debian packages.

Copies what `contents` names out of the unpacked packages: programs with the libraries that they need, kernel modules,
device rules, Python's library, certificates; and lays it out with merged `/usr`.

Failure modes: a program or library that is in no package is a `BuildError` that names it.
"""

from __future__ import annotations

import fnmatch
import shutil
from collections.abc import Iterable
from pathlib import Path

from ironbell.image.debian import BuildError, run
from ironbell.osie import contents, elf, modules

_PROGRAM_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin")
_MERGED = ("bin", "sbin", "lib", "lib64")
_EMPTY_FOLDERS = ("dev", "proc", "sys", "run", "tmp", "root", "mnt", "var/log", "var/tmp", "etc/lvm")


class TreeBuilder:
    """Fills one target folder from one folder of unpacked packages."""

    def __init__(self, *, packages: Path, target: Path) -> None:
        self.packages = packages
        self.target = target

    def lay_out(self) -> None:
        """Create the folders that every process expects, with `/bin`, `/sbin`, `/lib` inside `/usr`."""
        for name in ("bin", "lib", "lib64"):
            (self.target / "usr" / name).mkdir(parents=True, exist_ok=True)
            (self.target / name).symlink_to(f"usr/{name}")
        (self.target / "usr/sbin").symlink_to("bin")
        (self.target / "sbin").symlink_to("usr/bin")
        for name in _EMPTY_FOLDERS:
            (self.target / name).mkdir(parents=True, exist_ok=True)
        (self.target / "tmp").chmod(0o1777)
        (self.target / "var/run").symlink_to("../run")

    def add_programs(self) -> None:
        """Copy the kept programs, their other names, and busybox with its names for the others.

        Raises:
            BuildError: a program is in none of the packages.
        """
        for name in (*contents.PROGRAMS, "busybox"):
            self._copy(self._find_program(name), f"usr/bin/{name}")
        for name, aliases in contents.ALIASES.items():
            for alias in aliases:
                self._link(alias, name)
        for name in contents.APPLETS:
            if not (self.target / "usr/bin" / name).exists():
                self._link(name, "busybox")

    def add_udev(self) -> None:
        """Copy the device manager, its helpers and the rules that servers need."""
        (self.target / "usr/lib/systemd").mkdir(parents=True, exist_ok=True)
        (self.target / "usr/lib/systemd/systemd-udevd").symlink_to("../../bin/udevadm")
        for name in contents.UDEV_HELPERS:
            self._copy(self._find_library_file(f"udev/{name}"), f"usr/lib/udev/{name}")
        for name in contents.UDEV_RULES:
            self._copy(self._find_library_file(f"udev/rules.d/{name}"), f"usr/lib/udev/rules.d/{name}")

    def add_configuration(self) -> None:
        """Copy configuration of kept programs, and firmware where a package brought any."""
        for name in contents.CONFIGURATION:
            if (self.packages / name).exists():
                self._copy(self.packages / name, name)
        for folder in _glob_libraries(self.packages, "firmware"):
            self._copy(folder, "usr/lib/firmware")

    def add_certificates(self, extra: Iterable[Path] = ()) -> None:
        """Write one bundle of trusted certificate authorities: Debian's, and private ones.

        Raises:
            BuildError: a private authority's file is missing or holds no certificate.
        """
        bundle = self.target / "etc/ssl/certs/ca-certificates.crt"
        bundle.parent.mkdir(parents=True)
        parts = [path.read_text() for path in sorted((self.packages / "usr/share/ca-certificates").rglob("*.crt"))]
        parts += [certificates(path) for path in extra]
        bundle.write_text("".join(part if part.endswith("\n") else part + "\n" for part in parts))
        (self.target / "usr/lib/ssl").mkdir(parents=True, exist_ok=True)
        (self.target / "usr/lib/ssl/cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")
        (self.target / "usr/lib/ssl/certs").symlink_to("/etc/ssl/certs")

    def add_modules(self) -> str:
        """Copy the kept kernel modules with their index, and return the version of their kernel.

        Raises:
            BuildError: there is not exactly one kernel among the packages.
        """
        folders = sorted(path for path in _glob_libraries(self.packages, "modules/*") if (path / "kernel").is_dir())
        if len(folders) != 1:
            raise BuildError(f"expected one kernel, found {[folder.name for folder in folders]}")
        source, version = folders[0], folders[0].name
        _depmod(self.packages, version)
        dependencies = modules.parse_dependencies((source / "modules.dep").read_text())
        soft = modules.parse_soft_dependencies((source / "modules.softdep").read_text())
        target = self.target / "usr/lib/modules" / version
        for path in sorted(modules.select(dependencies, soft)):
            _copy_file(source / path, target / path)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            _copy_file(source / name, target / name)
        return version

    def add_python(self) -> str:
        """Copy the interpreter and the used part of its library, and return its version.

        Raises:
            BuildError: there is not exactly one Python 3 among the packages.
        """
        folders = sorted((self.packages / "usr/lib").glob("python3.*"))
        if len(folders) != 1:
            raise BuildError(f"expected one Python 3, found {[folder.name for folder in folders]}")
        name = folders[0].name
        self._copy(self._find_program(name), f"usr/bin/{name}")
        self._link("python3", name)
        for path in sorted(folders[0].rglob("*")):
            relative = path.relative_to(folders[0]).as_posix()
            if path.is_file() and not _is_unused(relative):
                _copy_file(path, self.target / "usr/lib" / name / relative)
        return name.removeprefix("python")

    def add_extra_files(self) -> None:
        """Copy every file of the extra packages that the user named."""
        listing = self.packages / "ironbell-extra-files"
        if not listing.exists():
            return
        for line in listing.read_text().splitlines():
            words = line.split(None, 5)
            if len(words) == 6 and not line.startswith("d") and not words[5].startswith("./usr/share/doc"):
                name = words[5].split(" -> ")[0].split(" link to ")[0].removeprefix("./")
                self._copy(self.packages / name, _merged(name))

    def add_libraries(self) -> None:
        """Copy the libraries that anything in the target needs, until nothing is missing.

        Raises:
            BuildError: a needed library is in none of the packages.
        """
        available = self._available_libraries()
        own = {path.name for path in self.target.rglob("*.so*")}
        for name in contents.LOADED_LIBRARIES:
            if name in available:
                self._copy_library(available[name], name)
        pending = [path for path in self.target.rglob("*") if path.is_file() and not path.is_symlink()]
        while pending:
            path = pending.pop()
            for needed in elf.needed(path.read_bytes()):
                name = Path(needed).name
                if name in own:
                    continue
                if name not in available:
                    raise BuildError(f"{path.relative_to(self.target)} needs {name}, which no package brought")
                own.add(name)
                pending.append(self._copy_library(available[name], needed))

    def _available_libraries(self) -> dict[str, Path]:
        libraries: dict[str, Path] = {}
        for folder in ("lib", "lib64", "usr/lib"):
            base = self.packages / folder
            for path in sorted((*base.glob("*.so*"), *base.glob("*/*.so*"), *base.glob("*/systemd/*.so*"))):
                libraries.setdefault(path.name, path)
        return libraries

    def _copy_library(self, source: Path, needed: str) -> Path:
        """Put a library where the loader expects it: the loader itself at its fixed path, others beside each other."""
        relative = source.relative_to(self.packages).as_posix()
        target = self.target / _merged(needed.lstrip("/") if needed.startswith("/") else relative)
        return _copy_file(_inside(source, self.packages), target)

    def _find_program(self, name: str) -> Path:
        for folder in _PROGRAM_FOLDERS:
            path = self.packages / folder / name
            if path.exists() or path.is_symlink():
                return _inside(path, self.packages)
        raise BuildError(f"no package brought the program {name}")

    def _find_library_file(self, name: str) -> Path:
        for folder in ("lib", "usr/lib"):
            if (self.packages / folder / name).exists():
                return self.packages / folder / name
        raise BuildError(f"no package brought {name}")

    def _copy(self, source: Path, relative: str) -> None:
        target = self.target / relative
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            _copy_file(source, target)

    def _link(self, name: str, target: str) -> None:
        path = self.target / "usr/bin" / name
        if not path.exists() and not path.is_symlink():
            path.symlink_to(target)


def _glob_libraries(packages: Path, pattern: str) -> list[Path]:
    """Matches below `/lib` and `/usr/lib`: packages use one or the other, depending on the release."""
    bases = [base for base in (packages / "lib", packages / "usr/lib") if base.is_dir()]
    return list({path.resolve(): path for base in bases for path in base.glob(pattern)}.values())


def _copy_file(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=True)
    return target


def _inside(path: Path, root: Path) -> Path:
    """Follow links as they would resolve with `root` as the root folder."""
    while path.is_symlink():
        link = path.readlink()
        path = root / link.relative_to("/") if link.is_absolute() else path.parent / link
    return path


def _merged(relative: str) -> str:
    first = relative.split("/", 1)[0]
    return f"usr/{relative}" if first in _MERGED else relative


def _is_unused(relative: str) -> bool:
    parts = relative.split("/")
    prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return "__pycache__" in parts or any(
        fnmatch.fnmatchcase(prefix, pattern) for prefix in prefixes for pattern in contents.PYTHON_UNUSED
    )


def certificates(path: Path) -> str:
    """The text of a file of certificate authorities.

    Raises:
        BuildError: the file cannot be read, or holds no certificate.
    """
    try:
        text = path.read_text()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise BuildError(f"--ca: {path} cannot be read: {problem}; give a PEM file of certificates") from error
    except UnicodeDecodeError:
        text = ""
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise BuildError(f"--ca: {path} holds no PEM certificate; give a PEM file of certificates")
    return text


def _depmod(root: Path, version: str) -> None:
    """Index modules with the host's depmod, or with the one among the packages where the host has none."""
    if shutil.which("depmod"):
        run(["depmod", "-b", str(root), version])
    else:
        run(["chroot", str(root), "depmod", version])


def index_modules(target: Path, version: str) -> None:
    """Write the module index of the finished tree: only the binary form, which is what modprobe and udev read."""
    _depmod(target, version)
    folder = target / "usr/lib/modules" / version
    for binary in folder.glob("*.bin"):
        (folder / binary.stem).unlink(missing_ok=True)
