"""Values that do not belong where they are, for replies that are broken on purpose."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["task", "complete", "input_required", "working", "completed", "failed", "t", "", 10**400, -1, 2**63]
    )
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)

Path = tuple[str | int, ...]


def places(value: Any, path: Path = (), most: int = 200) -> list[Path]:
    """Return the places in *value*, itself included."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        if len(found) >= most:
            break
        found += places(item, (*path, key), most - len(found))
    return found


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of *value* with *new* at *path*."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {k: replaced(v, tuple(rest), new) if k == key else v for k, v in value.items()}
    return [replaced(v, tuple(rest), new) if k == key else v for k, v in enumerate(value)]


def without(value: Any, path: Path) -> Any:
    """Return a copy of *value* without the member at *path*."""
    key, *rest = path
    if isinstance(value, dict):
        if not rest:
            return {k: v for k, v in value.items() if k != key}
        return {k: without(v, tuple(rest)) if k == key else v for k, v in value.items()}
    if not rest:
        return [v for k, v in enumerate(value) if k != key]
    return [without(v, tuple(rest)) if k == key else v for k, v in enumerate(value)]


@st.composite
def broken(draw: st.DrawFn, value: Any) -> Any:
    """Make *value* wrong in one to three places: something else there, nothing, or one member too many."""
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(value)))
        way = draw(st.sampled_from(["junk", "junk", "gone", "more"]))
        if way == "gone" and path:
            value = without(value, path)
        elif way == "more" and isinstance(value, dict):
            value = {**value, draw(st.sampled_from([*value, "x"])): draw(JUNK)}
        else:
            value = replaced(value, path, draw(JUNK))
    return value


def storable(found: Any) -> bool:
    """Say whether the times and lengths of what was read fit every database."""
    names = ("ttl_ms", "poll_interval_ms", "created_at_ms", "last_updated_at_ms")
    values = [getattr(found, name, None) for name in names]
    return all(value is None or (type(value) is int and abs(value) < 2**63) for value in values)
