"""Tools of the agent deep-research."""

# @meta read-only
# @sandbox read

import sys

sys.dont_write_bytecode = True  # the agent's directory stays as it was installed

import sources  # noqa: E402


def classify_source(url: str) -> dict:
    """Say how much the host of a web address is worth as a source: high (government, academic), medium (.org), preprint, tertiary (Wikipedia) or unverified.

    Args:
        url: The address, such as https://www.example.org/page
    """
    found = sources.tier(url)
    return {"host": sources.host_of(url), "tier": found, "why": sources.WHY[found]}
