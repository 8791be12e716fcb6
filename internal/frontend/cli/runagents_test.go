package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/run"
)

// recordedTeam is a run on record: an agent with a child that has one of its own, and a child
// that was at work when the program was killed. It was resumed once before, so that the calls of
// the first part are there twice.
func recordedTeam(t *testing.T) run.History {
	t.Helper()
	root := event.Source{Run: "k3v9", Agent: "architect"}
	critic := root.Child("critic", "agent_critic_1")
	scribe, second := critic.Child("scribe", "agent_scribe_2"), root.Child("critic", "agent_critic_3")
	h := run.History{Info: run.Info{ID: "k3v9", Agent: "architect", Status: run.Running, Usage: chat.Usage{InputTokens: 1000, OutputTokens: 90, Cost: 0.01}}}
	add := func(src event.Source, bodies ...event.Body) {
		for _, b := range bodies {
			raw, err := json.Marshal(event.Event{Time: time.Unix(0, 0), Source: src, Body: b})
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, raw)
		}
	}
	reply := event.Reply{Usage: chat.Usage{InputTokens: 300, CachedInputTokens: 200, OutputTokens: 30, ReasoningTokens: 10, Cost: 0.002}}
	spawn := []event.Body{event.ToolCall{ID: "1", Name: "agent__spawn"}, event.ToolResult{ID: "1", Name: "agent__spawn"}}
	add(root, event.Started{Model: "m"}, reply)
	add(root, spawn...)
	add(root, event.Started{Model: "m", Resumed: true})
	add(root, spawn...)
	add(critic, event.Started{Model: "m", Prompt: "Find mistakes"}.Under(root), reply)
	add(critic, event.ToolCall{ID: "1", Name: "fs_cat"}, event.ToolResult{ID: "1", Name: "fs_cat", Failed: true}, event.ToolCall{ID: "2", Name: "fs_cat"}, event.ToolResult{ID: "2", Name: "fs_cat"})
	add(scribe, event.Started{Model: "m"}.Under(critic), reply, event.Finished{Outcome: "timed_out", Error: "no event for 10m0s", Code: "limit", Duration: time.Minute, Own: reply.Usage, Usage: reply.Usage})
	add(critic, event.Finished{Outcome: "done", Duration: 1500 * time.Millisecond, Own: reply.Usage, Usage: reply.Usage.Add(reply.Usage)})
	item := 12
	add(second, event.Started{Graph: "critic", Node: "a"}.Under(event.Source{Node: "review", Item: &item}))
	h.Events = append(h.Events, json.RawMessage(`{"type":"reply","usage":[]}`))
	return h
}

func TestAgentsOfARun(t *testing.T) {
	t.Parallel()
	detail, err := summary.Detail(t.Context(), nil, recordedTeam(t))
	if err != nil {
		t.Fatal(err)
	}
	agents := detail.Agents
	var b strings.Builder
	if err := printAgents(&b, agents); err != nil {
		t.Fatal(err)
	}
	want := `
agents
AGENT         STATUS       TIME  CALLS   IN  CACHED  OUT  REASONING     COST  TOTAL  TOTAL COST  PROMPT
architect     interrupted     -      1  300     200   30         10  $0.0020   1090     $0.0100
  critic      done         1.5s      2  300     200   30         10  $0.0020    660     $0.0040  Find mistakes
    scribe    timed out    1m0s      0  300     200   30         10  $0.0020    330     $0.0020
  critic[12]  interrupted     -      0    0       0    0          0        -      0           -

tools
  architect: agent__spawn 1
  critic: fs_cat 2 (1 failed)

errors
  scribe: no event for 10m0s
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(agents[3])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"agent":"critic","name":"critic[12]","agent_id":"agent_critic_3","depth":1,"parent_node":"review","parent_item":12,"status":"interrupted","seconds":0,"tools":[],`+
		`"usage":{"input_tokens":0,"output_tokens":0},"total":{"input_tokens":0,"output_tokens":0}}`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := agents[1].Tools; len(got) != 1 || got[0] != (api.ToolUse{Name: "fs_cat", Calls: 2, Failed: 1}) {
		t.Errorf("tools %v", got)
	}
}

// TestAgentsOfARunAlone: a run without children has no tree.
func TestAgentsOfARunAlone(t *testing.T) {
	t.Parallel()
	h := recordedTeam(t)
	h.Events = h.Events[:4]
	if got, err := summary.Detail(t.Context(), nil, h); err != nil || got.Agents != nil {
		t.Errorf("%v, %v", got.Agents, err)
	}
}
