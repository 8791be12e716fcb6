"""classify: lists the sources in the findings by how much their hosts are worth."""

import sys

sys.dont_write_bytecode = True  # the agent's directory stays as it was installed

import graph_state  # noqa: E402
import sources  # noqa: E402

state = graph_state.load()
found = sources.addresses(state["findings_text"])
by_tier = {tier: [url for url in found if sources.tier(url) == tier] for tier in sources.TIERS}
lines = [f"- {tier}: {url}" for tier in sources.TIERS for url in by_tier[tier]]
lines += [f"- own file: {path}" for path in state["knowledge_sources"]]
graph_state.emit(
    source_table="\n".join(lines) or "No source was named.",
    source_counts={tier: len(by_tier[tier]) for tier in sources.TIERS},
)
