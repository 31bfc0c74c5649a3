"""Template variables against clusterctl itself: upstream's manifests, and a table of operators and mistakes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.base.errors import IronbellError
from ironbell.codec.envsubst import MissingVariablesError, SubstitutionError, substitute, variables
from ironbell.codec.goyaml import load_all
from support.programs.catalog import CLUSTERCTL, build_program, cluster_api_sources
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

VALUES = {
    "NAME": "my-cluster",
    "PATH_LIKE": "/usr/local/lib/name.tar.gz",
    "UMLAUT": "äöü",
    "EMPTY": "",
    "BACK": "a\\b*c",
}
GOOD = r"""
${NAME} ${ NAME } ${NAME } ${	NAME} $NAME $$ $${NAME} $$$ $$${NAME} a$ {NAME} }
${NAME^} ${NAME^^} ${NAME,} ${NAME,,} ${NAME^,} ${UMLAUT^} ${UMLAUT^^}
${#NAME} ${#UMLAUT} ${#EMPTY}
${NAME:3} ${NAME:0:2} ${NAME:-5} ${NAME:1:100} ${NAME:20} ${NAME:20:1} ${NAME:x} ${NAME:1:x} ${NAME: 1} ${NAME:+2}
${NAME:3::4} ${UMLAUT:2} ${UMLAUT:0:4}
${PATH_LIKE#*/} ${PATH_LIKE##*/} ${PATH_LIKE%.*} ${PATH_LIKE%%.*} ${PATH_LIKE#/usr} ${PATH_LIKE%gz} ${PATH_LIKE#x}
${PATH_LIKE#?u} ${PATH_LIKE##[/a-z]*[/]} ${PATH_LIKE%[!z]} ${PATH_LIKE%[^a]} ${PATH_LIKE#[} ${PATH_LIKE#[]/]}
${PATH_LIKE#\/} ${PATH_LIKE#[z-a]} ${PATH_LIKE#[^z-a]} ${PATH_LIKE#[/\]]} ${PATH_LIKE#*} ${PATH_LIKE##*}
${PATH_LIKE#*usr*l} ${PATH_LIKE##*usr*l} ${BACK#a\\b\*} ${BACK#a[\\]} ${BACK#\} ${BACK#[a} ${BACK#[a-}
${PATH_LIKE/usr/opt} ${PATH_LIKE//a/A} ${PATH_LIKE/#\/usr/opt} ${PATH_LIKE/%gz/xz} ${PATH_LIKE/l} x/} ${PATH_LIKE/l/}
${PATH_LIKE//\//-} ${PATH_LIKE//\//\\} ${BACK//\\/\/} ${PATH_LIKE/#x/y} ${PATH_LIKE/#\/usr/} ${PATH_LIKE/usr//x}
${PATH_LIKE//l/$$} ${PATH_LIKE/a//} ${NAME//-/${EMPTY:=_}} ${NAME//${EMPTY:=-}/_}
${NOT_SET:=one} ${NOT_SET:-two} ${NOT_SET=three} ${NOT_SET:?four} ${NOT_SET:+five} ${NAME:=x} ${NAME:+x} ${NAME:?x}
${EMPTY:=default} ${EMPTY:=${NAME}} ${EMPTY:=a ${NAME} b} ${EMPTY:=a${UNKNOWN}b} ${EMPTY} ${EMPTY:=}
${EMPTY:=a$b} ${EMPTY:="quoted {"} ${EMPTY:=a:b:c} ${EMPTY:=${NOT_SET:=${NAME^^}}} ${EMPTY:=a$$b} ${EMPTY:==}
${LATER:=one} ${LATER} # ${IN_A_COMMENT:=c}
${SUBSTRING:3} ${REPLACED/a/b} ${CUT%x}
${UMLAUT/ö/o} ${UMLAUT#ä} ${UMLAUT//[ö]/x}
"""
BAD = [
    "${}", "${-}", "${NAME", "${NAME:", "${NAME:}", "${NAME::3}", "${NAME-x}", "${NAME?x}", "${NAME#}", "${NAME%%}",
    "${NAME/}", "${NAME/a}", "${NAME//a}", "${NAME:=x", "${NAME^^^}", "${NAME,x}", "${#}", "${#NAME^}", "${NAME!}",
    "${NAME:=${}}", "a ${NAME NAME}", "${NAME/a${EMPTY}b/c}", "${NAME:1${EMPTY}:2}", "${NAME###x", "${NA-ME}", "${ }",
]  # fmt: skip
MISSING = ["${B} ${A} ${ B }", "${A:=} ${B:-}", "${A} ${A:=x}", "${A^^} ${#B} # ${C}", "${A:=${B}} ${B}"]


@pytest.fixture(scope="module")
def clusterctl() -> Path:
    try:
        return build_program(CLUSTERCTL)
    except CannotBuild as error:
        missing_program(error)


def generated(
    clusterctl: Path, path: Path, values: dict[str, str], *options: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [clusterctl, "generate", "yaml", "--from", path, *options],
        env={"HOME": "/nonexistent", "CLUSTERCTL_DISABLE_VERSIONCHECK": "true", **values},
        capture_output=True,
        check=False,
        timeout=60,
    )


def listed(output: bytes) -> set[str]:
    return {line.split()[1].decode() for line in output.splitlines() if line.startswith(b"  - ")}


def test_each_operator_gives_what_clusterctl_gives(clusterctl: Path, tmp_path: Path) -> None:
    path = tmp_path / "template.yaml"
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n"
    path.write_text(head + "".join(f"    {line}\n" for line in GOOD.splitlines()))
    theirs = generated(clusterctl, path, VALUES)
    assert theirs.returncode == 0, theirs.stderr
    (answer,) = documents(theirs.stdout)
    assert substitute(GOOD, VALUES).splitlines() == answer["data"]["text"].splitlines()


@pytest.mark.parametrize("text", [*BAD, *MISSING])
def test_what_clusterctl_refuses_is_refused(clusterctl: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(f"a: b\n# {text}\n")
    theirs = generated(clusterctl, path, {"NAME": "n", "EMPTY": ""})
    assert theirs.returncode, theirs.stdout
    with pytest.raises(IronbellError) as refused:
        substitute(path.read_text(), {"NAME": "n", "EMPTY": ""})
    if text in MISSING:
        assert isinstance(refused.value, MissingVariablesError)
        assert f"[{', '.join(refused.value.names)}]" in theirs.stderr.decode()
    else:
        assert str(refused.value).startswith("line 2: ")


def documents(text: bytes) -> list[Any]:
    """clusterctl reads the result and writes it again, so the documents are compared, not the text."""
    return [document for document in load_all(text) if document]


def in_order(found: list[Any]) -> list[bytes]:
    return sorted(msgspec.json.encode(document, order="deterministic") for document in found)


def _is_template(text: str) -> bool:
    return "${" in text and "\nkind: " in text


def upstream_templates() -> list[Path]:
    try:
        folder = cluster_api_sources()
    except CannotBuild:
        return []
    return sorted(path for path in folder.rglob("*.yaml") if _is_template(path.read_text()))


def test_upstream_manifests_have_the_same_variables_and_text(clusterctl: Path) -> None:
    """Each file: what it asks for, and what becomes of it. One that clusterctl cannot read, we cannot either."""
    found = upstream_templates()
    assert found
    for path in found:
        text = path.read_text()
        theirs = generated(clusterctl, path, {}, "--list-variables")
        if theirs.returncode:
            with pytest.raises(SubstitutionError):
                variables(text)
            continue
        ours = variables(text)
        assert listed(theirs.stdout) == set(ours), path
        values = {name: f"value-of-{name}" for name, default in ours.items() if default is None}
        theirs = generated(clusterctl, path, values)
        assert theirs.returncode == 0, theirs.stderr
        assert in_order(documents(substitute(text, values).encode())) == in_order(documents(theirs.stdout)), path
