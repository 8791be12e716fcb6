package node_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// shelf is a knowledge base that finds the query itself. Its first searches fail, or wait for the
// end of their context.
type shelf struct {
	mu       sync.Mutex
	queries  []string
	failures []error
	stuck    bool
}

func (*shelf) Name() string { return "shelf" }

func (s *shelf) Search(ctx context.Context, q rag.Query) (rag.Found, error) {
	if s.stuck {
		<-ctx.Done()
		return rag.Found{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, q.Text)
	if len(s.failures) > 0 {
		err := s.failures[0]
		s.failures = s.failures[1:]
		return rag.Found{Usage: chat.Usage{InputTokens: 1}}, err
	}
	return rag.Found{Base: "shelf", Query: q.Text, Usage: chat.Usage{InputTokens: 2}, Hits: []rag.Hit{
		{Path: "/a.md", Start: 3, End: 4, Text: "about " + q.Text, Score: 1}, {Path: "https://b.test/", Text: "more"}, {Path: "/a.md", Start: 9, End: 9, Text: "last"},
	}}, nil
}

const lookup = `
start: find
initial_state: {initial_prompt: bees}
nodes:
  find: {type: rag, documents: [d], query: "{{initial_prompt}}?", RETRY, state_updates: {context: "{{output.context}}", sources: "{{output.sources}}", all: "{{output}}"}, next: done}
  done: {type: end, output: "{{context}} {{sources}}"}
`

func TestRAG(t *testing.T) {
	s := new(shelf)
	out, events, err := world{bases: map[string]rag.Searcher{"find": s}}.drive(t.Context(), t, strings.Replace(lookup, "RETRY, ", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	const context = "[Source: /a.md:3-4]\nabout bees?\n\n[Source: https://b.test/]\nmore\n\n[Source: /a.md:9]\nlast"
	if want := context + ` ["/a.md","https://b.test/"]`; out.Output != want {
		t.Errorf("output %q, want %q", out.Output, want)
	}
	if out.Usage.InputTokens != 2 || state(out, "output") != "" {
		t.Errorf("usage %+v, output in the state %s", out.Usage, state(out, "output"))
	}
	found := 0
	for _, ev := range events.Events() {
		if r, ok := ev.Body.(event.Retrieved); ok && ev.Node == "find" && r.Query == "bees?" && len(r.Sources) == 3 && r.Duration > 0 {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d events of the search", found)
	}
}

func TestRAGFails(t *testing.T) {
	busy := &provider.Error{Kind: provider.Transient, Msg: "busy"}
	for _, tt := range []struct {
		name, retry string
		shelf       *shelf
		searches    int
		want        string // in the error; "" for none
	}{
		{"once", "", &shelf{failures: []error{busy}}, 1, "searching the knowledge base: busy"},
		{"again", "retry: {attempts: 3, backoff: 0}, ", &shelf{failures: []error{busy, busy}}, 3, ""},
		{"for_good", "retry: {attempts: 3, backoff: 0}, ", &shelf{failures: []error{&provider.Error{Kind: provider.Authentication, Msg: "who are you?"}}}, 1, "who are you?"},
		{"too_slow", "timeout: 0, ", &shelf{stuck: true}, 0, "rag node timed out after 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := world{bases: map[string]rag.Searcher{"find": tt.shelf}}.drive(t.Context(), t, strings.Replace(lookup, "RETRY, ", tt.retry, 1))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if len(tt.shelf.queries) != tt.searches {
				t.Errorf("%d searches, want %d", len(tt.shelf.queries), tt.searches)
			}
			if tt.name == "again" && out.Usage.InputTokens != 4 {
				t.Errorf("usage %+v", out.Usage)
			}
		})
	}
	_, _, err := world{}.drive(t.Context(), t, strings.Replace(lookup, "RETRY, ", "", 1))
	if fault.CodeOf(err) != fault.Config {
		t.Errorf("without a knowledge base: %v", err)
	}
}

// TestRAGInMap: the branches search side by side, and each delivers what it found.
func TestRAGInMap(t *testing.T) {
	s := new(shelf)
	out, _, err := world{bases: map[string]rag.Searcher{"find": s}}.drive(t.Context(), t, `
start: each
initial_state: {topics: [bees, ants]}
nodes:
  each: {type: map, over: "{{topics}}", as: topic, branch: find, collect_into: found, next: done}
  find: {type: rag, documents: [d], query: "{{topic}}"}
  done: {type: end, output: "{{found[0].context}} {{found[1].sources[1]}}"}
`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.Output, "[Source: /a.md:3-4]\nabout bees") || !strings.HasSuffix(out.Output, " https://b.test/") || out.Usage.InputTokens != 4 {
		t.Errorf("output %q, usage %+v", out.Output, out.Usage)
	}
}
