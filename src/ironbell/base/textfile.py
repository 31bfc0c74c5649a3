"""YAML files that users name: read as text, or one line on why they cannot be and what to give instead."""

from __future__ import annotations

from pathlib import Path

from ironbell.base.errors import IronbellError, Retry


class TextFileError(IronbellError):
    """A file that cannot be read, or is not text."""

    reason = "InvalidInput"
    retry = Retry.NEVER


def read_text_file(path: Path, *, purpose: str, also: str = "") -> str:
    """The text of a file. `purpose` names what is expected, such as "a cluster template"; `also` another place for it.

    Raises:
        TextFileError: it does not exist, is a folder, cannot be read, or holds bytes that are not text.
    """
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise TextFileError(f"{path} is a folder; give the file that holds {purpose}") from None
    except FileNotFoundError:
        raise TextFileError(f"there is no file {path}; give the file that holds {purpose}{also}") from None
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise TextFileError(f"{path} cannot be read: {problem}; give a file that holds {purpose}") from error
    return text_of(content, name=str(path), purpose=purpose)


def text_of(content: bytes, *, name: str, purpose: str) -> str:
    """The content of a file as text.

    Raises:
        TextFileError: it holds bytes that are not text.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise TextFileError(f"{name} is a binary file; give {purpose}, which is YAML")
    return text
