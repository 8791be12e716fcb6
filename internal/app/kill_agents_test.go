//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// converse asks a plain agent.
func converse(ctx context.Context, a *app.App, of agent.Agent, runs *run.Service) error {
	talks := a.Conversations()
	talks.Runs = runs
	conv := talks.Begin(conversation.Options{NoStream: true, Caller: conversation.Caller{Events: a.Events(event.Discard), Asker: ask.Unavailable{}, Yes: true}})
	none := func(context.Context) (map[string]string, error) { return map[string]string{}, nil }
	if err := conv.UseAgent(ctx, a.PlainAgent(of, nil, ask.Unavailable{}, none)); err != nil {
		return err
	}
	_, err := conv.Ask(ctx, conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, "prompt"), Text: "prompt"}})
	return err
}

// modelCall is a call of a tool that the model wants.
type modelCall struct {
	name string
	args map[string]any
}

// effect is the call of a tool that asks the counter service for one effect. The calls of one
// conversation differ by n, or they would be repetitions.
func effect(n int) modelCall {
	return modelCall{"execute_command", map[string]any{
		"command": post + fmt.Sprintf(` && echo "$answer" # %d`, n), "sandbox": "full", "reason": "The counter listens on this machine.",
	}}
}

// calls is the reply of a model that wants tools.
func calls(list ...modelCall) map[string]any {
	var wanted []any
	for i, c := range list {
		arguments, _ := json.Marshal(c.args)
		wanted = append(wanted, map[string]any{
			"id": fmt.Sprintf("call_%d", i+1), "type": "function", "function": map[string]any{"name": c.name, "arguments": string(arguments)},
		})
	}
	return map[string]any{"role": "assistant", "tool_calls": wanted}
}

// says is the reply of a model that is done.
func says(text string) map[string]any { return map[string]any{"role": "assistant", "content": text} }

var childID = regexp.MustCompile(`"id":"(agent_\w+)"`)

// killedAgents are a plain agent with three levels of children, all of which have effects: boss starts
// two leads at once, each lead a worker, and each worker a hand.
func killedAgents() scenario {
	below := map[string]string{"boss": "lead", "lead": "worker", "worker": "hand"}
	files := make(map[string]string)
	for _, name := range []string{"boss", "lead", "worker", "hand"} {
		files["config/agents/"+name+"/config.yaml"] = fmt.Sprintf("name: %s\ninstructions: You are %[1]s.\nglobal_tools: [execute_command]\ncan_spawn_agents: %v\n", name, below[name] != "")
	}
	return scenario{
		files: files, agent: "boss", effects: 1 + 2*(1+1+2), lost: 2,
		act: func(req killRequest) map[string]any {
			who, _, _ := strings.Cut(strings.TrimPrefix(req.Messages[0].Content, "You are "), ".")
			last := req.Messages[len(req.Messages)-1].Content
			child, leads := below[who], 1
			if who == "boss" {
				leads = 2
			}
			switch {
			case child == "" && req.rounds < 2:
				return calls(effect(req.rounds + 1))
			case child == "":
				return says(who + " says " + last)
			case req.rounds == 0:
				list := []modelCall{effect(1)}
				for i := range leads {
					list = append(list, modelCall{"agent__spawn", map[string]any{"agent": child, "prompt": fmt.Sprintf("part %d of %s", i, last)}})
				}
				return calls(list...)
			case req.rounds == 1:
				var list []modelCall
				for _, m := range req.Messages[len(req.Messages)-leads:] {
					id := childID.FindStringSubmatch(m.Content)
					list = append(list, modelCall{"agent__collect", map[string]any{"id": id[1]}})
				}
				return calls(list...)
			}
			var outputs []string
			for _, m := range req.Messages[len(req.Messages)-leads:] {
				outputs = append(outputs, m.Content)
			}
			return says(who + " got " + strings.Join(outputs, " and "))
		},
	}
}

// TestKillAgents kills the process of a plain agent while it and its children work.
func TestKillAgents(t *testing.T) { killAndResume(t, killedAgents()) }
