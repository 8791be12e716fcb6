// Plans that models propose.

const code = (text) => `\`${text.replaceAll("`", "'")}\``;

// planOf returns the plan of a tool call as Markdown, "" if the call has none.
export function planOf(name, argument) {
  if (name !== "plan__propose") return "";
  try {
    const plan = JSON.parse(argument);
    const steps = plan.steps.map((step, i) => [`${i + 1}. ${step.text}`, ...(step.files ?? []).map((f) => `   - file: ${code(f)}`), ...(step.commands ?? []).map((c) => `   - command: ${code(c)}`)].join("\n"));
    const open = plan.open?.length ? ["Open:", plan.open.map((text) => `- ${text}`).join("\n")] : [];
    return [`### ${plan.title}`, plan.summary, steps.join("\n"), ...open].join("\n\n");
  } catch {
    return ""; // not as declared: shown like any call
  }
}
