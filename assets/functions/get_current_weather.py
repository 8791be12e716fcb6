# @sandbox network wttr.in

from urllib.parse import quote
from urllib.request import Request, urlopen


def run(location: str) -> str:
    """Get the current weather in a given location.

    Args:
        location: The city and, optionally, the state or country, such as "Paris" or "San Francisco, CA"
    """
    request = Request(f"https://wttr.in/{quote(location)}?format=4&M", headers={"User-Agent": "curl"})
    with urlopen(request, timeout=30) as reply:
        return reply.read().decode("utf-8").strip()
