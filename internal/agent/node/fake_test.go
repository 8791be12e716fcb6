package node_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/node"
	"loki/internal/base/ask"
	"loki/internal/base/fault/retry"
	"loki/internal/base/process/environ"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// model is a chat model made of a function from a request to a reply. It keeps the
// requests.
type model struct {
	answer func(ctx context.Context, req provider.Request, call int) (string, error)
	retry  retry.Policy // of its calls

	mu       sync.Mutex
	requests []provider.Request
}

// replies is a model that gives one reply after the other: texts and errors.
func replies(all ...any) *model {
	return &model{answer: func(_ context.Context, _ provider.Request, call int) (string, error) {
		if call > len(all) {
			return "", fmt.Errorf("call %d was not expected", call)
		}
		if err, ok := all[call-1].(error); ok {
			return "", err
		}
		return all[call-1].(string), nil
	}}
}

func (m *model) ChatModel(_ context.Context, id string) (engine.Model, error) {
	return engine.Model{ID: id, Name: id, Provider: m, Retry: m.retry, SupportsTools: true}, nil
}

func (m *model) Chat(ctx context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	call := len(m.requests)
	m.mu.Unlock()
	return func(yield func(provider.Chunk, error) bool) {
		text, err := m.answer(ctx, req, call)
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		stop := chat.StopEnd
		for i, call := range strings.Split(text, "call ")[1:] { // call NAME ARGUMENTS
			name, arguments, _ := strings.Cut(call, " ")
			if len(req.Tools) == 0 || !yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: fmt.Sprint(i), Name: name, Arguments: strings.TrimSpace(arguments)}}, nil) {
				break
			}
			text, stop = "", chat.StopToolCalls
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: text}, nil) {
			yield(provider.Chunk{Kind: provider.End, Stop: stop, Usage: chat.Usage{InputTokens: 2, OutputTokens: 1}}, nil)
		}
	}
}

// prompt is the last message of a request.
func prompt(req provider.Request) string { return req.Messages[len(req.Messages)-1].Text() }

// world is what the nodes of a test can reach.
type world struct {
	model   *model
	asker   ask.Asker
	scripts map[string]string // by name; they are run by a shell
	environ []string
	journal run.Journal // nil records nothing

	options  func(o *node.Options) // changes what nodes can reach; nil for nothing
	children map[string]childFunc
	bases    map[string]rag.Searcher // by the ids of nodes
	from     *run.Recovery           // where a recorded run goes on; nil for the start
	answered []string                // questions that were answered for it
}

// drive runs a graph in the world and returns what came of it and the events.
func (w world) drive(ctx context.Context, t *testing.T, text string) (run.Outcome, *eventtest.Collector, error) {
	t.Helper()
	g, findings, err := graph.Parse("graph.yaml", []byte("name: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
	if len(w.scripts) > 0 && runtime.GOOS == "windows" {
		t.Skip("the scripts need a POSIX shell")
	}
	dir := t.TempDir()
	for name, script := range w.scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if w.model == nil {
		w.model = replies()
	}
	e, err := engine.New(engine.Options{Models: w.model})
	if err != nil {
		t.Fatal(err)
	}
	p := graph.NewPlan(g)
	c := new(eventtest.Collector)
	o := node.Options{
		Plan: p, Engine: e, Context: engine.RequestContext{Model: "c:m"}, Asker: w.asker, Agent: "test",
		Scripts: node.Scripts{AgentDir: dir, Child: environ.Child{Environ: append([]string{"PATH=" + os.Getenv("PATH")}, w.environ...)}},
	}
	if w.children != nil {
		o.Team = family(w.children)
	}
	o.Knowledge = make(map[string]node.Knowledge)
	for id, base := range w.bases {
		o.Knowledge[id] = node.Knowledge{Searcher: base}
	}
	if w.options != nil {
		w.options(&o)
	}
	nodes := node.New(o)
	defer nodes.Close()
	work := run.Graph{Plan: p, Nodes: nodes, Start: run.StartCheckpoint(p, graph.NewState(g.InitialState))}
	if w.from != nil {
		work.Start, work.Tasks = w.from.Last, w.from.Tasks
	}
	out, err := run.Run(ctx, run.Options{Work: work, Events: event.NewScope(c, event.Source{}, nil), Journal: w.journal, Answered: w.answered})
	return out, c, err
}

// state returns the JSON of a key of the final state, "" if it is absent.
func state(out run.Outcome, key string) string {
	v, ok := out.State.Get(key)
	if !ok {
		return ""
	}
	return v.String()
}
