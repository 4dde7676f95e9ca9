"""What does not fit a struct, in words: what a value must be, and which names there are. Pure.

msgspec says where a value does not fit; what would fit is read from the struct itself. No value is repeated.
"""

import re
from typing import Any

PLACE = re.compile(r"(.*?)(?: - at (`key` in )?`\$\.?([^`]*)`)?", re.DOTALL)
NAMED = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
STEP = re.compile(r"[^.\[]+|\[[^\]]*\]")


def in_words(error: str, struct: type[Any] | None) -> str:
    """The message of a `ValidationError` over this struct; any other as it is. msgspec.inspect costs, so only now."""
    found = PLACE.fullmatch(error)
    if found is None or struct is None:
        return error
    what, of_key, where = found[1], bool(found[2]), found[3] or ""
    at = _at(struct, where)
    if (name := NAMED.fullmatch(what)) is not None:
        missing = name[1].startswith("missing")
        return _missing(where, name[2]) if missing else _unknown(where, name[2], at) or error
    if at is None or not what.startswith(("Expected ", "Invalid enum value")):
        return error
    must = _must(getattr(at, "key_type", None) if of_key else at)
    return error if must is None else f"{_spoken(where, of_key)} must be {must}"


def _missing(where: str, name: str) -> str:
    return f"{where}.{name} is missing" if where else f"{name} is missing"


def _unknown(where: str, name: str, struct: Any) -> str | None:
    if struct is None:
        return None
    known = ", ".join(field.encode_name for field in struct.fields) or "none at all"
    return f"there is no {f'{where}.{name}' if where else name}; known: {known}"


def _spoken(where: str, of_key: bool) -> str:
    if of_key:
        return f"a name in {where}"
    return f"a value in {where.removesuffix('[...]')}" if where.endswith("[...]") else where or "it"


def _at(struct: type[Any], where: str) -> Any:
    """The type at a place; None where there is none such."""
    from msgspec import inspect

    at = _bare(inspect.type_info(struct))
    for step in STEP.findall(where):
        match at:
            case inspect.StructType(fields=fields):
                at = next((each.type for each in fields if each.encode_name == step), None)
            case inspect.DictType(value_type=inner):
                at = inner
            case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner):
                at = inner
            case _:
                return None
        at = _bare(at)
    return at


def _bare(type: Any) -> Any:
    """Without the null that stands for left out. TOML has none, so nobody can write it."""
    from msgspec import inspect

    if isinstance(type, inspect.UnionType):
        some = [one for one in type.types if not isinstance(one, inspect.NoneType)]
        return some[0] if len(some) == 1 else type
    return type


def _must(type: Any) -> str | None:
    from msgspec import inspect

    match type:
        case inspect.Metadata(extra_json_schema={"description": str(words)}):
            return words
        case inspect.Metadata(type=inner):
            return _must(inner)
        case inspect.DictType(max_length=int(most)):
            return f"a table of {most} names at most"
        case inspect.StructType() | inspect.DictType():
            return "a table"
        case inspect.VarTupleType() | inspect.ListType():
            return "a list"
    return _one(type)


def _one(type: Any) -> str | None:
    from msgspec import inspect

    match type:
        case inspect.LiteralType(values=values):
            *most, last = map(str, values)
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.IntType():
            return f"a whole number{_range(type)}"
        case inspect.FloatType():
            return f"a number{_range(type)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType(pattern=None, min_length=None | 1, max_length=None):
            return "text" if type.min_length is None else "text, and not empty"
    return None


def _range(type: Any) -> str:
    least = (("from", type.ge), ("above", type.gt))
    most = (("to" if type.ge is not None else "up to", type.le), ("below", type.lt))
    said = [f" {word} {_figure(limit)}" for word, limit in (*least, *most) if limit is not None]
    return " and".join(said) if type.ge is None else "".join(said)


def _figure(number: float) -> str:
    return f"{number:f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)
