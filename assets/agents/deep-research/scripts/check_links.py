"""check_links: asks each address in the report for its head, and says which do not answer.

An address that leads to this computer or a private network is not asked, as the report comes from
the web; LOKI_FETCH_ALLOW makes exceptions, as for fetch_url_via_curl. Redirects are not followed:
a page that has moved is there.
"""

import concurrent.futures
import http.client
import ipaddress
import os
import socket
import ssl
import sys
from urllib.parse import quote, urlsplit

sys.dont_write_bytecode = True  # the agent's directory stays as it was installed

import graph_state  # noqa: E402
import sources  # noqa: E402

SECONDS = 5
AT_ONCE = 8
MOST = 100
# Servers that refuse a question for the head alone, or a program, have the page.
REFUSALS = {401, 403, 405, 406, 429, 501}

allowed = [entry.strip().lower() for entry in os.environ.get("LOKI_FETCH_ALLOW", "").split(",") if entry.strip()]


def may_ask(host, address):
    """Reports whether the address of a host is public or among the exceptions."""
    ip = ipaddress.ip_address(address.split("%")[0])
    if ip.is_global and not ip.is_multicast:
        return True
    for entry in allowed:
        if entry == "*" or entry == host:
            return True
        try:
            if ip in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            pass
    return False


def probe(url):
    """Returns "" for an address that answers, else what is wrong."""
    try:
        parts = urlsplit(url)
        host, secure = parts.hostname, parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
        if not may_ask(host, found):
            return "not asked: it is not a public address"
        if secure:
            connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        # The address that was judged is the one that is connected to.
        connection._create_connection = lambda _, *args, **kwargs: socket.create_connection((found, port), *args, **kwargs)
        try:
            target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + ("?" + quote(parts.query, safe="=&%/:?@!$'()*+,;~-._") if parts.query else "")
            connection.request("HEAD", target, headers={"User-Agent": "loki-deep-research", "Accept": "*/*"})
            status = connection.getresponse().status
        finally:
            connection.close()
        return "" if status < 400 or status in REFUSALS else f"status {status}"
    except (OSError, ValueError, http.client.HTTPException) as problem:
        return f"no answer ({type(problem).__name__})"


urls = sources.addresses(graph_state.load()["report"])
with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    results = list(zip(urls, pool.map(probe, urls[:MOST])))
dead = [(url, problem) for url, problem in results if problem]
if not urls:
    note = "Links: the report has none."
elif not dead:
    note = f"Links: all {len(results)} answer."
else:
    note = f"Links: {len(results) - len(dead)} of {len(results)} answer. Check these by hand:\n" + "\n".join(f"- {url}: {problem}" for url, problem in dead)
if len(urls) > MOST:
    note += f"\nOnly the first {MOST} of {len(urls)} links were checked."
graph_state.emit(link_note=note, dead_links=[url for url, _ in dead])
