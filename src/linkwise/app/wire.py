"""Messages between the server and the process that clusters: a line of JSON, then plain arrays.

Nothing is unpickled: a message holds numbers, texts and the values of `KINDS`, and can do nothing.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from linkwise._inputs import is_sparse
from linkwise.active.answers import Answer
from linkwise.app.engine import Found, Known, Question

if TYPE_CHECKING:
    from linkwise._types import AnyArray

KINDS: dict[str, Any] = {"Known": Known, "Found": Found, "Question": Question}
NUMBERS = "biuf"  # kinds of arrays


def send(stream: IO[bytes], name: str, *values: Any) -> None:
    """Write a message: what it is about, and its values."""
    arrays: list[AnyArray] = []
    text = json.dumps([name, [_plain(value, arrays) for value in values]])
    stream.write(text.encode() + b"\n")
    for array in arrays:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[str, list[Any]]:
    """Wait for a message and read it; EOFError if there is none any more."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    name, values = json.loads(line)
    return str(name), [_value(value, stream) for value in values]


def _plain(value: Any, arrays: list[AnyArray]) -> Any:
    """Return a value as JSON can hold it; arrays are put aside."""
    if isinstance(value, np.ndarray) or is_sparse(value):
        return _put_aside(value, arrays)
    if isinstance(value, Answer):
        return {"Answer": [value.i, value.j, value.answer, value.belief]}
    if type(value) in KINDS.values():
        return {type(value).__name__: [_plain(part, arrays) for part in value]}
    if isinstance(value, dict):
        return {"dict": value}
    if isinstance(value, (list, tuple)):
        return [_plain(part, arrays) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _put_aside(value: Any, arrays: list[AnyArray]) -> dict[str, Any]:
    if is_sparse(value):
        rows = value.tocsr()
        parts = [_put_aside(part, arrays) for part in (rows.data, rows.indices, rows.indptr)]
        return {"sparse": [rows.shape, *parts]}
    arrays.append(np.ascontiguousarray(value))
    return {"array": [value.dtype.str, value.shape]}


def _value(plain: Any, stream: IO[bytes]) -> Any:
    """Return what JSON held; lists become tuples."""
    if isinstance(plain, list):
        return tuple(_value(part, stream) for part in plain)
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "dict":
        return content
    if kind == "array":
        return _array(content[0], content[1], stream)
    return MAKERS[kind](*(_value(part, stream) for part in content))


def _sparse(shape: tuple[int, int], *parts: AnyArray) -> Any:
    from scipy.sparse import csr_array  # noqa: PLC0415  (the server of plain numbers needs none)

    return csr_array(parts, shape=shape)


def _answer(i: int, j: int, answer: str, belief: float) -> Answer:
    return Answer(i, j, answer, belief=belief)


MAKERS: dict[str, Any] = {**KINDS, "Answer": _answer, "sparse": _sparse}


def _array(kind: str, shape: list[int], stream: IO[bytes]) -> AnyArray:
    if np.dtype(kind).kind not in NUMBERS:
        raise ValueError(f"{kind} is no kind of numbers.")
    array = np.empty(shape, dtype=kind)
    left = array.reshape(-1).view(np.uint8).data
    while left.nbytes:
        n_read = stream.readinto(left)  # type: ignore[attr-defined]
        if not n_read:
            raise EOFError
        left = left[n_read:]
    return array
