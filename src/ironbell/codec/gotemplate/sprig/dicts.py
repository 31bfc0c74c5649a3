"""Dictionaries.

Source: Masterminds/sprig v3.3.0: dict.go; dario.cat/mergo v1.0.1: merge.go.
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError, check_items
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.meter import charge
from ironbell.codec.gotemplate.sprig.convert import text_of
from ironbell.codec.gotemplate.values import ANY_TYPE, TypedMap, is_empty, strings

DICTS = Library()
_add = DICTS.add


@_add("dict", rest=P.ANY)
def _dict(*values: Any) -> dict[str, Any]:
    pairs = [*values, ""] if len(values) % 2 else values
    return {text_of(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


_add("get", P.MAP, P.STRING)(lambda mapping, key: mapping.get(key, ""))


@_add("set", P.MAP, P.STRING, P.ANY)
def _set(mapping: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    if isinstance(mapping, TypedMap) and mapping.is_nil:
        raise CallError("assignment to entry in nil map")
    check_items(len(mapping) + 1)
    mapping[key] = value
    return mapping


@_add("unset", P.MAP, P.STRING)
def _unset(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    mapping.pop(key, None)
    return mapping


_add("hasKey", P.MAP, P.STRING)(lambda mapping, key: key in mapping)


@_add("pluck", P.STRING, rest=P.MAP)
def _pluck(key: str, *mappings: dict[str, Any]) -> list[Any]:
    return [mapping[key] for mapping in mappings if key in mapping]


_add("keys", rest=P.MAP)(lambda *mappings: strings(key for mapping in mappings for key in mapping))
_add("values", P.MAP)(lambda mapping: list(mapping.values()))


@_add("pick", P.MAP, rest=P.STRING)
def _pick(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: mapping[key] for key in keys if key in mapping}


@_add("omit", P.MAP, rest=P.STRING)
def _omit(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


_add("merge mustMerge", P.MAP, rest=P.MAP)(lambda target, *sources: _merged(target, sources, overwrite=False))


@_add("mergeOverwrite mustMergeOverwrite", P.MAP, rest=P.MAP)
def _merge_overwrite(target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
    return _merged(target, sources, overwrite=True)


def _merged(target: dict[str, Any], sources: tuple[dict[str, Any], ...], *, overwrite: bool) -> dict[str, Any]:
    if isinstance(target, TypedMap) and target.is_nil:
        target = {}
    for source in sources:
        merge_into(target, source, overwrite=overwrite)
    return target


def merge_into(target: dict[str, Any], source: dict[str, Any], *, overwrite: bool, depth: int = 0) -> None:
    """mergo's rule: maps merge; absent and empty places take the source's value, all others only when overwriting."""
    if depth > 16:
        raise CallError("nested too deeply to be merged")
    if not _mergeable(target) and getattr(source, "elem", ANY_TYPE) != getattr(target, "elem", ANY_TYPE):
        raise CallError("maps of different types cannot be merged")
    charge(len(source))
    for key, value in list(source.items()):
        if value is None:
            if overwrite:
                target[key] = None
            continue
        present = target.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            merge_into(present, value, overwrite=overwrite, depth=depth + 1)
            if present:
                continue
        if overwrite or is_empty(present):
            target[key] = value
        check_items(len(target))


def _mergeable(value: dict[str, Any]) -> bool:
    return getattr(value, "elem", ANY_TYPE) == ANY_TYPE


@_add("dig", rest=P.ANY)
def _dig(*args: Any) -> Any:
    if len(args) < 3:
        raise CallError("dig needs at least three arguments")
    *keys, default, value = args
    if not all(isinstance(key, str) for key in keys):
        raise CallError("dig's keys must be strings")
    for key in keys:
        if not isinstance(value, dict) or not _mergeable(value):
            raise CallError(f'no map to look up "{key}" in')
        if key not in value:
            return default
        value = value[key]
    return value
