"""local_knowledge: finds the passages in ./knowledge that fit the topic best.

Prints context, the passages as one text, and sources, the paths of their files. Texts are cut into
pieces of 1000 characters that share 100 with the next; the best 6 by the words they have in common
with the topic are taken (BM25; Robertson and Zaragoza, 2009).
"""

import collections
import math
import os
import re
import sys

sys.dont_write_bytecode = True  # the agent's directory stays as it was installed

import graph_state  # noqa: E402

DIRECTORY = "knowledge"
SIZE, OVERLAP, BEST = 1000, 100, 6
FILE_LIMIT, FILES = 1 << 20, 2000


def words(text):
    return [w for w in re.findall(r"\w+", text.lower()) if len(w) > 2]


def pieces():
    count = 0
    for folder, folders, files in os.walk(DIRECTORY):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(f for f in files if not f.startswith(".")):
            count += 1
            if count > FILES:
                return
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    data = file.read(FILE_LIMIT)
            except OSError:
                continue
            if b"\0" in data:
                continue
            text = data.decode("utf-8", "replace").strip()
            for start in range(0, max(len(text) - OVERLAP, 1), SIZE - OVERLAP):
                if text[start : start + SIZE].strip():
                    yield path, text[start : start + SIZE]


def ranked(query, found):
    counts = [collections.Counter(words(text)) for _, text in found]
    lengths = [sum(c.values()) for c in counts]
    average = sum(lengths) / len(lengths) or 1
    score = [0.0] * len(found)
    for word in set(words(query)):
        having = sum(1 for c in counts if c[word])
        weight = math.log(1 + (len(found) - having + 0.5) / (having + 0.5))
        for i, c in enumerate(counts):
            score[i] += weight * c[word] * 2.2 / (c[word] + 1.2 * (0.25 + 0.75 * lengths[i] / average))
    best = sorted(range(len(found)), key=lambda i: (-score[i], i))[:BEST]
    return [found[i] for i in best if score[i] > 0]


everything = list(pieces())
best = ranked(graph_state.load()["topic"], everything) if everything else []
graph_state.emit(
    context="\n\n".join(f"[{path}]\n{text}" for path, text in best),
    sources=list(dict.fromkeys(path for path, _ in best)),
)
