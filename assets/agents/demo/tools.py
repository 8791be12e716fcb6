"""The tools of the agent demo: every public function of this file is one."""

# @sandbox network ipinfo.io

import json
import os
import urllib.request


def get_ipinfo() -> dict:
    """Look up the public address of this computer, and the place and provider that go with it."""
    # @env IPINFO_TOKEN
    # @meta read-only
    request = urllib.request.Request(os.environ.get("IPINFO_URL", "https://ipinfo.io/json"))
    token = os.environ.get("IPINFO_TOKEN")
    if token:
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request, timeout=15) as reply:
        return json.load(reply)
