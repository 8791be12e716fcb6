package todo_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"loki/internal/agent/team/todo"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
	"loki/internal/tool"
)

// player is a provider that plays replies, one a call, and keeps the requests. A reply is a
// text, or the calls of tools: "todo__add {...}", several on lines of their own.
type player struct {
	replies  []string
	requests []provider.Request
}

func (p *player) ChatModel(context.Context, string) (engine.Model, error) {
	return engine.Model{ID: "test:model", Provider: p, SupportsTools: true}, nil
}

func (p *player) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	reply := p.replies[len(p.requests)%len(p.replies)]
	p.requests = append(p.requests, req)
	return func(yield func(provider.Chunk, error) bool) {
		stop := chat.StopEnd
		for line := range strings.Lines(reply) {
			name, args, isCall := strings.Cut(strings.TrimSpace(line), " {")
			chunk := provider.Chunk{Kind: provider.Text, Text: line}
			if isCall {
				stop = chat.StopToolCalls
				chunk = provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: name, Name: name, Arguments: "{" + args}}
			}
			if !yield(chunk, nil) {
				return
			}
		}
		yield(provider.Chunk{Kind: provider.End, Stop: stop, Usage: chat.Usage{InputTokens: 2, OutputTokens: 1}}, nil)
	}
}

// keys is a recorder that keeps the keys of what is recorded.
type keys []string

func (k *keys) Lookup(context.Context, string, steps.Step) (steps.Record, error) {
	return steps.Record{}, nil
}
func (k *keys) Begin(context.Context, string, steps.Step) error { return nil }
func (k *keys) Forget(context.Context, string) error            { return nil }
func (k *keys) Record(_ context.Context, key string, s steps.Step, _ []byte) error {
	if s.Kind == steps.Model {
		*k = append(*k, key)
	}
	return nil
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	on := todo.Settings{Enabled: true, Max: 10}
	const plan = "todo__add {\"task\": \"a\"}\ntodo__add {\"task\": \"b\"}"
	for _, tt := range []struct {
		name     string
		settings todo.Settings
		replies  []string
		text     string
		keys     string
	}{
		{"nothing_open", on, []string{"hello"}, "hello", "model/1"},
		{"off", todo.Settings{Max: 10}, []string{plan, "planned"}, "planned", "model/1 model/2"},
		{
			"until_done", on,
			[]string{plan, "planned", `todo__done {"id": 1}`, "one", `todo__done {"id": 2}`, "two"},
			"planned\none\ntwo", "model/1 model/2 continue/2/model/1 continue/2/model/2 continue/3/model/1 continue/3/model/2",
		},
		{
			"two_replies_change_nothing", on,
			[]string{plan, "planned", "I am about to.", "I still am.", "never asked"},
			"planned\nI am about to.\nI still am.", "model/1 model/2 continue/2/model/1 continue/3/model/1",
		},
		{
			"a_list_written_again_is_no_progress", on,
			[]string{plan, "planned", "todo__init {\"goal\": \"\"}\n" + plan, "planned", "todo__init {\"goal\": \"\"}\n" + plan, "planned", "never asked"},
			"planned\nplanned\nplanned", "model/1 model/2 continue/2/model/1 continue/2/model/2 continue/3/model/1 continue/3/model/2",
		},
		{
			"at_most",
			todo.Settings{Enabled: true, Max: 1},
			[]string{plan, "planned", `todo__done {"id": 1}`, "one", "never asked"},
			"planned\none", "model/1 model/2 continue/2/model/1 continue/2/model/2",
		},
		{
			"clearing_starts_the_count_again",
			todo.Settings{Enabled: true, Max: 1},
			[]string{plan, "planned", `todo__clear {}`, `todo__add {"task": "c"}`, "new plan", `todo__done {"id": 1}`, "done"},
			"planned\nnew plan\ndone",
			"model/1 model/2 continue/2/model/1 continue/2/model/2 continue/2/model/3 continue/3/model/1 continue/3/model/2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, list, recorded := &player{replies: tt.replies}, new(todo.List), new(keys)
			e, err := engine.New(engine.Options{Models: p})
			if err != nil {
				t.Fatal(err)
			}
			set, err := tool.NewSet(todo.Tools(list)...)
			if err != nil {
				t.Fatal(err)
			}
			rc := engine.RequestContext{Model: "test:model", Steps: steps.New(recorded)}
			reply, err := todo.Answer(t.Context(), e, &rc, engine.Request{
				Messages: []chat.Message{chat.Text(chat.User, "work")}, Tools: tool.NewBox(tool.Options{Tools: set}),
			}, list, &tt.settings)
			if err != nil || reply.Text != tt.text {
				t.Errorf("got %q, %v; want %q", reply.Text, err, tt.text)
			}
			if got := strings.Join(*recorded, " "); got != tt.keys {
				t.Errorf("recorded %s; want %s", got, tt.keys)
			}
			if want := len(p.requests); reply.Usage.OutputTokens != want {
				t.Errorf("%d tokens of %d calls", reply.Usage.OutputTokens, want)
			}
		})
	}
}

func TestAnswerAsksToGoOn(t *testing.T) {
	t.Parallel()
	p, list := &player{replies: []string{"Started.", `todo__done {"id": 1}`, "Done."}}, new(todo.List)
	list.Init("a book")
	list.Add("write")
	e, err := engine.New(engine.Options{Models: p})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(todo.Tools(list)...)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := todo.Answer(t.Context(), e, &engine.RequestContext{Model: "test:model"}, engine.Request{
		Messages: []chat.Message{chat.Text(chat.User, "work")}, Tools: tool.NewBox(tool.Options{Tools: set}),
	}, list, &todo.Settings{Enabled: true, Max: 5, Prompt: "Go on."})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range p.requests[1].Messages {
		texts = append(texts, string(m.Role)+": "+m.Text())
	}
	want := "user: work\nassistant: Started.\nuser: Go on.\n\nGoal: a book\nProgress: 0/1 completed\n  ○ 1. write"
	if got := strings.Join(texts, "\n"); got != want {
		t.Errorf("the request to go on has\n%s\nwant\n%s", got, want)
	}
	var roles []string
	for _, m := range reply.Messages {
		roles = append(roles, string(m.Role))
	}
	if got := strings.Join(roles, " "); got != "assistant user assistant tool assistant" {
		t.Errorf("the reply has messages of %s", got)
	}
}
