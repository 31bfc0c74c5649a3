"""Lists.

Source: Masterminds/sprig v3.3.0: list.go, strings.go (strslice, split).
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError, check_chars, check_items
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.sprig.convert import text_of, texts_of, to_int64
from ironbell.codec.gotemplate.values import (
    ANY_TYPE,
    TypedList,
    TypedMap,
    deep_equal,
    dereference,
    encode,
    is_empty,
    kind_name,
    strings,
)

LISTS = Library()
_add = LISTS.add
_NIL_LIST = {"elem": ANY_TYPE, "is_nil": True}


def _items(value: Any, verb: str) -> list[Any]:
    if value is None:
        raise CallError(f"cannot {verb} nil")
    if not isinstance(value, list):
        raise CallError(f"Cannot {verb} on type {kind_name(value)}")
    return value


_add("list tuple", rest=P.ANY)(lambda *values: list(values))
_add("append push mustAppend mustPush", P.ANY, P.ANY)(lambda items, value: [*_items(items, "push"), value])
_add("prepend mustPrepend", P.ANY, P.ANY)(lambda items, value: [value, *_items(items, "prepend")])
_add("first mustFirst", P.ANY)(lambda items: next(iter(_items(items, "find first")), None))
_add("last mustLast", P.ANY)(lambda items: next(reversed(_items(items, "find last")), None))


@_add("rest mustRest", P.ANY)
def _all_but_first(items: Any) -> list[Any]:
    return list(items[1:]) if _items(items, "find rest") else TypedList(elem=ANY_TYPE, is_nil=True)


@_add("initial mustInitial", P.ANY)
def _initial(items: Any) -> list[Any]:
    return list(items[:-1]) if _items(items, "find initial") else TypedList(elem=ANY_TYPE, is_nil=True)


_add("reverse mustReverse", P.ANY)(lambda items: list(reversed(_items(items, "find reverse"))))


@_add("compact mustCompact", P.ANY)
def _compact(items: Any) -> list[Any]:
    return [item for item in _items(items, "compact") if not is_empty(item)]


@_add("uniq mustUniq", P.ANY)
def _uniq(items: Any) -> list[Any]:
    result: list[Any] = []
    for item in _items(items, "find uniq"):
        # Compared with all that were kept, which is charged.
        if not _contains(result, item):
            result.append(item)
    return result


def _contains(items: list[Any] | tuple[Any, ...], needle: Any) -> bool:
    return any(deep_equal(needle, item) for item in items)


@_add("without mustWithout", P.ANY, rest=P.ANY)
def _without(items: Any, *omitted: Any) -> list[Any]:
    return [item for item in _items(items, "find without") if not _contains(omitted, item)]


@_add("has mustHas", P.ANY, P.ANY)
def _has(needle: Any, items: Any) -> bool:
    return items is not None and _contains(_items(items, "find has"), needle)


@_add("slice mustSlice", P.ANY, rest=P.ANY)
def _slice(items: Any, *indices: Any) -> Any:
    if items is None:
        raise CallError("cannot slice nil")
    if not isinstance(items, list):
        raise CallError(f"list should be type of slice or array but {kind_name(items)}")
    if not items:
        return None
    start = to_int64(indices[0]) if indices else 0
    end = to_int64(indices[1]) if len(indices) > 1 else len(items)
    if not 0 <= start <= end <= len(items):
        raise CallError("slice index out of bounds")
    return TypedList(items[start:end], elem=items.elem) if isinstance(items, TypedList) else items[start:end]


@_add("concat", rest=P.ANY)
def _concat(*lists: Any) -> list[Any]:
    result: list[Any] = []
    for items in lists:
        result += _items(items, "concat")
        check_items(len(result))
    return result or TypedList(elem=ANY_TYPE, is_nil=True)


@_add("chunk mustChunk", P.INT, P.ANY)
def _chunk(size: int, items: Any) -> list[Any]:
    elements = _items(items, "chunk")
    if size <= 0 and (size == 0 or not elements):
        raise CallError("chunks need a positive size")
    # With a negative size, Go's arithmetic puts a single element into its own chunk, and returns nothing for more.
    step = size if size > 0 else 1
    used = elements if size > 0 or len(elements) == 1 else []
    if size < 0 and (len(elements) - 1) // size + 1 < 0:
        raise CallError("chunks need a positive size")
    chunks = [list(used[start : start + step]) for start in range(0, len(used), step)]
    return TypedList(chunks, elem=f"[]{ANY_TYPE}")


@_add("join", P.STRING, P.ANY)
def _join(separator: str, items: Any) -> str:
    texts = texts_of(items)
    check_chars(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


_add("toStrings", P.ANY)(lambda items: strings(texts_of(items)))


@_add("sortAlpha", P.ANY)
def _sort_alpha(items: Any) -> list[Any]:
    if isinstance(dereference(items), list):
        return strings(sorted(texts_of(items), key=encode))
    return strings([text_of(items)])


_add("split", P.STRING, P.STRING)(lambda separator, text: _numbered(go_split(text, separator, -1)))


@_add("splitn", P.STRING, P.INT, P.STRING)
def _splitn(separator: str, count: int, text: str) -> dict[str, Any]:
    return _numbered(go_split(text, separator, count))


_add("splitList", P.STRING, P.STRING)(lambda separator, text: strings(go_split(text, separator, -1)))


def go_split(text: str, separator: str, count: int) -> list[str]:
    """Go's SplitN: an empty separator splits into characters, a count of 0 gives nothing."""
    if count == 0:
        return []
    if not separator:
        check_items(len(text))
        return list(text) if count < 0 or count >= len(text) else [*text[: count - 1], text[count - 1 :]]
    parts = text.split(separator, count - 1 if count > 0 else -1)
    check_items(len(parts))
    return parts


def _numbered(parts: list[str]) -> dict[str, Any]:
    return TypedMap({f"_{index}": part for index, part in enumerate(parts)}, elem="string")
