#!/usr/bin/env python3
"""A tool with some of everything, to be damaged by a test."""
import os, sys
from typing import List, Optional
from . import sibling as other

LIMIT: int = 0x_ff + 1_000 - int(3.5e-2) ** 2
TABLE = {"a": [1, 2, 3], **{"b": (4,)}, 'c': {5, 6}}


@decorator(1, key=lambda a, b=2, *c: a + b)
class Thing(object, metaclass=type):
    x: int = 1; y = 2

    def method(self, *args, key=None, **kwargs) -> "Thing":
        self.x += 1 if key is not None else -1
        return [n for n in args if n not in kwargs][1:-1:2]


def _helper(path, /, mode="r", *, end=os.sep):
    try:
        with open(path, mode) as f, open(path) as g:
            yield from (line.strip() for line in f)
    except (OSError, ValueError) as e:
        raise RuntimeError(f"cannot read {path!r:>{LIMIT}} {e}") from e
    else:
        pass
    finally:
        del f, g


async def run(name: str, count: Optional[int] = None, tags: List[str] = ["a", "b"]) -> dict[str, int]:
    """Say hello.

    Args:
        name: whom to greet
        count: how often
    """
    global LIMIT
    while count and count > 0 or not name:
        if (n := len(name)) >= 10 and n != 20:
            break
        elif n == 3:
            continue
        else:
            count -= 1
    for i, (k, v) in enumerate(TABLE.items()):
        print(i, k, v, sep="\t", file=sys.stderr)
        await other.work(*tags, **TABLE)
    match name:
        case "a" | "b":
            assert count, "no count"
        case _:
            return {}
    return {"text": 'it''s', "n": ~count @ 2 << 1, r"raw": b"bytes"}
