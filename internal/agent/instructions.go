package agent

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/team/todo"
	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// Prompt is what the system prompt of a plain agent is made of, besides its definition.
type Prompt struct {
	Base  string      // instructions as they are written: those of the definition, or what the agent's script printed
	Tools []chat.Tool // that the model gets
	Texts
}

// Texts are the values of placeholders.
type Texts struct {
	Variables map[string]string                     // of the agent, by name
	Special   func(name string) (v string, ok bool) // __os__ and the like; nil knows none
}

// SystemPrompt returns the system prompt of a plain agent: the instructions with their
// placeholders filled in, and behind them a section for each group of tools that the program
// gives the model, unless the definition leaves it out. The text is never read as anything but
// text: a line of hyphens in it is one.
func (d *Definition) SystemPrompt(p Prompt) string {
	special := p.Special
	p.Special = func(name string) (string, bool) {
		if name == "__tools__" {
			return toolList(p.Tools), true
		}
		if special == nil {
			return "", false
		}
		return special(name)
	}
	parts := []string{strings.TrimSpace(p.Expand(p.Base))}
	if d.Todo.Inject && has(p.Tools, "todo__init") {
		parts = append(parts, todo.Instructions)
	}
	if d.InjectSpawn && has(p.Tools, "agent__spawn") {
		parts = append(parts, spawnSection)
	}
	if has(p.Tools, "agent__send_message") {
		parts = append(parts, teamSection)
	}
	if has(p.Tools, "user__ask") {
		parts = append(parts, userSection)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "\n\n")
}

func has(tools []chat.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t chat.Tool) bool { return t.Name == name })
}

// toolList numbers tools and says what each is for, one a line.
func toolList(tools []chat.Tool) string {
	lines := make([]string, len(tools))
	for i, t := range tools {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		lines[i] = fmt.Sprintf("%d. %s: %s", i+1, t.Name, strings.TrimSpace(first))
	}
	return strings.Join(lines, "\n")
}

var placeholder = text.Regexp(`\{\{\s*([^{}\s]+)\s*\}\}`)

// Expand fills in the placeholders of a text, {{name}}: first the variables, then the special
// ones, which the value of a variable may hold. Others stay as they are. Secrets are never
// filled in, as the text is for a model.
func (t Texts) Expand(text string) string {
	text = replace(text, func(name string) (string, bool) {
		v, ok := t.Variables[name]
		return v, ok
	})
	if t.Special == nil {
		return text
	}
	return replace(text, t.Special)
}

func replace(text string, lookup func(string) (string, bool)) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder().ReplaceAllStringFunc(text, func(match string) string {
		if v, ok := lookup(placeholder().FindStringSubmatch(match)[1]); ok {
			return v
		}
		return match
	})
}

// The sections that explain the tools of the program to a model.
const (
	spawnSection = `## Other agents
You can start other agents. They work in the background, at the same time as you and each other, and see nothing but the prompt that you give them: put all that they need into it.

| Tool | Use |
|---|---|
| agent__list_available {} | list the agents that you may start, with what they are for |
| agent__spawn {"agent", "prompt"} | start an agent; returns its id at once, such as "agent_explore_1a2b3c4d" |
| agent__check {"id"} | get the result if the agent has finished; never waits |
| agent__collect {"id"} | wait for the result, which can be taken once |
| agent__list {} | list the agents that you have started |
| worktree__merge {"id"} | merge the branch of an agent that you started with "worktree": true, after its result was taken |
| agent__cancel {"id"} | stop an agent whose work is no longer needed |
| agent__task_create {"subject", "description", "blocked_by", "agent", "prompt"} | add a task; only "subject" is required |
| agent__task_list {} | list the tasks and their states |
| agent__task_complete {"task_id"} | mark a task as completed, so that tasks that wait for it can begin |
| agent__task_fail {"task_id"} | mark a task as failed; tasks that wait for it stay blocked |
| agent__reply_escalation {"escalation_id", "reply"} | answer a question of an agent |

Start agents whose work is independent together, in one reply, never one after another. Continue your own work, then collect every agent that you have started. For example, in one reply:
agent__spawn {"agent": "explore", "prompt": "Find where requests are retried ..."}
agent__spawn {"agent": "explore", "prompt": "Find all tests of the parser ..."}
and later, with each of the two ids:
agent__collect {"id": "agent_explore_1a2b3c4d"}

Use tasks for work that has an order. Their ids are numbers, as text: "1", "2". A task with "blocked_by": ["1", "2"] waits until both are completed. A task with "agent" and "prompt" starts that agent as soon as nothing blocks it. When the agent has finished, look at its result and complete the task yourself.

A question of an agent is shown as "pending_escalations" in the result of a tool. The agent waits for the answer, and continues without one after some time. So answer at once with agent__reply_escalation: from what you know, or after you have asked the user. If it has options, reply with the exact text of one.`

	teamSection = `## Teammates
Other agents may be at work at the same time as you.
- agent__send_message {"id", "message"}: tell another agent what you found if it concerns its work. The id is that of an agent that you have started, of one that was started beside you, or "parent" for the one that has started you.
- agent__check_inbox {}: read your messages, which empties the inbox. A message is seen only when its receiver does this, so check before you finish.`

	userSection = `## Questions to the user
Ask when a decision is the user's or the task is unclear, and not for what you can find out yourself.
- user__ask {"question", "options"}: the user chooses one option or gives another answer. Returns {"answer": "..."}.
- user__confirm {"question"}: yes or no. Returns {"answer": "yes"} or {"answer": "no"}.
- user__input {"question"}: any text. Returns {"answer": "..."}.
- user__checkbox {"question", "options"}: any number of the options. Returns {"answers": ["..."]}.
If another agent has started you, your questions go to the agent at the top, which answers or asks the user.`
)
