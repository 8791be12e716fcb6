package engine_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/ask"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
	"loki/internal/tool"
)

// slowToAsk is a tool that needs n - i seconds to find out what it asks about call i of n.
type slowToAsk struct{ n int }

func (slowToAsk) Declaration() chat.Tool { return chat.Tool{Name: "save"} }
func (slowToAsk) Hints() tool.Hints      { return tool.Hints{} }
func (slowToAsk) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Output: "saved"}, nil
}

func (s slowToAsk) Consent(c tool.Call) string {
	args, err := tool.Decode[struct{ I int }](c)
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Duration(s.n-args.I) * time.Second)
	return fmt.Sprintf("Save %d?", args.I)
}

// saving asks for n calls in its first reply.
type saving struct{ n int }

func (s saving) ChatModel(_ context.Context, id string) (engine.Model, error) {
	return engine.Model{ID: id, Name: id, Provider: s, SupportsTools: true}, nil
}

func (s saving) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if len(req.Messages) > 1 {
			_ = yield(provider.Chunk{Kind: provider.Text, Text: "Done."}, nil) && yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
			return
		}
		for i := range s.n {
			call := chat.ToolCall{ID: fmt.Sprint(i), Name: "save", Arguments: fmt.Sprintf(`{"i":%d}`, i)}
			if !yield(provider.Chunk{Kind: provider.ToolCall, ToolCall: call}, nil) {
				return
			}
		}
		yield(provider.Chunk{Kind: provider.End, Stop: chat.StopToolCalls}, nil)
	}
}

// TestConsentIsAskedInTheOrderOfTheCalls: whatever time the calls of a reply need to find out
// what to ask, and though there are more of them than run at once.
func TestConsentIsAskedInTheOrderOfTheCalls(t *testing.T) {
	const n = 20
	synctest.Test(t, func(t *testing.T) {
		set, err := tool.NewSet(slowToAsk{n})
		if err != nil {
			t.Fatal(err)
		}
		var asked, want []string
		box := tool.NewBox(tool.Options{Tools: set, Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
			asked = append(asked, q.Text)
			if len(asked)%2 == 0 {
				return "yes", nil
			}
			return "no", nil
		})})
		e, err := engine.New(engine.Options{Models: saving{n}})
		if err != nil {
			t.Fatal(err)
		}
		rc := &engine.RequestContext{Model: "c:m", Events: event.NewScope(new(eventtest.Collector), event.Source{}, nil)}
		reply, err := e.Run(t.Context(), rc, engine.Request{Messages: []chat.Message{chat.Text(chat.User, "save")}, Tools: box})
		if err != nil || reply.Text != "Done." {
			t.Fatalf("%q, %v", reply.Text, err)
		}
		for i := range n {
			want = append(want, fmt.Sprintf("Save %d?", i))
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	})
}
