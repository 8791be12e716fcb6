"""The state of the graph, for the scripts of this directory."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load():
    """Returns the state as a dict."""
    path = os.environ.get("GRAPH_STATE_FILE")
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["GRAPH_STATE"])


def emit(**members):
    """Prints what becomes of the state; next_node names the node to go to."""
    if "next_node" in members:
        members["_next"] = members.pop("next_node")
    sys.stdout.buffer.write(json.dumps(members).encode())
