import os


def _instructions():
    """Generates the instructions."""
    return "You speak " + os.environ.get("LLM_AGENT_VAR_LANGUAGE", "English") + " on {{__os_family__}}."


def greet(name: str):
    """Greet someone.

    Args:
        name: Who
    """
    return "hello " + name
