# @sandbox read

import os
from typing import List, Literal, Optional


def run(
    string: str,
    string_enum: Literal["foo", "bar"],
    boolean: bool,
    integer: int,
    number: float,
    array: List[str],
    string_optional: Optional[str] = None,
    integer_with_default: int = 42,
    boolean_with_default: bool = True,
    number_with_default: float = 3.14,
    string_with_default: str = "hello",
    array_optional: Optional[List[str]] = None,
):
    """Demonstrates the parameter types of a Python tool, and returns what it was given.

    Args:
        string: A required string
        string_enum: A required string with two possible values
        boolean: A required boolean
        integer: A required integer
        number: A required number
        array: A required array of strings
        string_optional: An optional string
        integer_with_default: An integer with a default
        boolean_with_default: A boolean with a default
        number_with_default: A number with a default
        string_with_default: A string with a default
        array_optional: An optional array of strings
    """
    given = dict(locals())
    lines = [f"{name}: {value}" for name, value in given.items()]
    lines += [f"{name}: {value}" for name, value in sorted(os.environ.items()) if name.startswith("LLM_")]
    return "\n".join(lines)
