import json
from typing import Optional


def _secret():
    return 1


def get_ipinfo(ip: Optional[str] = None):
    """Get the address of the machine.

    Args:
        ip: The address to look up
    """
    return json.dumps({"ip": ip})
