"""How much the host of an address is worth as a source, and which addresses a text has.

Used by the agent's tool classify_source and by its scripts.
"""

import re
from urllib.parse import urlsplit

PREPRINTS = ("arxiv.org", "biorxiv.org", "medrxiv.org", "ssrn.com")
# Labels that mean government or university, at the end of a host or before a country.
PUBLIC = {"edu", "ac", "gov", "gouv", "gob", "gub", "govt", "mil"}
TIERS = ("high", "medium", "preprint", "tertiary", "unverified")

WHY = {
    "high": "a government or academic domain",
    "medium": "an organization's domain (.org)",
    "preprint": "a preprint server: not peer-reviewed",
    "tertiary": "Wikipedia: good for finding sources, not for citing",
    "unverified": "nothing is known about this host",
}

ADDRESS = re.compile(r"https?://[^\s<>\"'`\]|\\^{}]+")
DOI = re.compile(r"\b10\.\d{4,9}/[^\s<>\"'`\]|\\^{}]+")


def host_of(url):
    """Returns the host of an address in lower case, "" if it has none."""
    if "//" not in url:
        url = "//" + url
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def tier(url):
    """Returns one of TIERS for an address or a host."""
    host = host_of(url)

    def below(domain):
        return host == domain or host.endswith("." + domain)

    if any(below(d) for d in PREPRINTS):
        return "preprint"
    if below("wikipedia.org"):
        return "tertiary"
    labels = host.split(".")
    if labels[-1] in PUBLIC or (len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in PUBLIC):
        return "high"
    if labels[-1] == "org":
        return "medium"
    return "unverified"


def trimmed(match):
    """Returns an address without the punctuation of the sentence around it."""
    text = match.group().rstrip(".,;:!?*_")
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip(".,;:!?*_")
    return text


def addresses(text):
    """Returns the addresses in a text, each once, in its order. A bare DOI becomes one."""
    found = {}
    rest = []
    end = 0
    for match in ADDRESS.finditer(text):
        url = trimmed(match)
        if host_of(url):
            found.setdefault(url, match.start())
        rest.append(text[end : match.start()])
        end = match.end()
    rest.append(text[end:])
    for match in DOI.finditer(" ".join(rest)):
        found.setdefault("https://doi.org/" + trimmed(match), len(text))
    return sorted(found, key=lambda url: found[url])
