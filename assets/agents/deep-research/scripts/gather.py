"""gather: adds the answers of this pass to the findings."""

import sys

sys.dont_write_bytecode = True  # the agent's directory stays as it was installed

import graph_state  # noqa: E402

state = graph_state.load()
findings = list(state["findings"])
for question, answer in zip(state["questions"], state["answers"]):
    findings.append({"question": question, "answer": answer if isinstance(answer, str) else str(answer)})
graph_state.emit(
    findings=findings,
    findings_text="\n\n".join(f"### {f['question']}\n\n{f['answer'].strip()}" for f in findings),
)
