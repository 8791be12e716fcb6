package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// fake is a tool that keeps the contract, save for what flaw names.
type fake struct {
	flaw  string
	asked *atomic.Int32 // declarations so far
}

func (f fake) Declaration() chat.Tool {
	times := f.asked.Add(1)
	d := chat.Tool{
		Name: "fake", Description: "A fake.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"A text."}},"required":["text"]}`),
	}
	switch {
	case f.flaw == "name":
		d.Name = "a fake"
	case f.flaw == "mute":
		d.Description = ""
	case f.flaw == "undescribed":
		d.Parameters = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	case f.flaw == "undeclared":
		d.Parameters = json.RawMessage(`{"type":"object","properties":{},"required":["text"]}`)
	case f.flaw == "gullible": // else the box refuses what does not fit
		d.Parameters = json.RawMessage(`{"type":"object","properties":{"text":{"description":"A text."}}}`)
	case f.flaw == "no_object":
		d.Parameters = json.RawMessage(`{"type":"string"}`)
	case f.flaw == "fickle" && times > 1:
		d.Description = "Another."
	}
	return d
}

func (f fake) Hints() tool.Hints {
	return tool.Hints{ReadOnly: f.flaw == "contradictory", Destructive: f.flaw == "contradictory"}
}

func (f fake) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	var members map[string]any
	if err := json.Unmarshal(c.Arguments, &members); err != nil {
		return tool.Result{}, err
	}
	text, ok := members["text"].(string)
	switch {
	case f.flaw == "strict" && len(members) > 1:
		return tool.Result{}, errors.New("what is that?")
	case f.flaw == "failing":
		return tool.Result{}, errors.New("no")
	case !ok && f.flaw != "gullible":
		return tool.Result{}, errors.New("no text")
	case ctx.Err() != nil && f.flaw != "deaf":
		return tool.Result{}, ctx.Err()
	case text == "slow" && f.flaw != "deaf":
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Output: text}, nil
}

// guard is a fake that asks for consent and does not say why.
type guard struct{ fake }

func (guard) Consent(tool.Call) string { return "Sure?" }

// witness counts failures instead of failing.
type witness struct {
	testing.TB
	failures int
}

func (w *witness) Helper()               {}
func (w *witness) Error(...any)          { w.failures++ }
func (w *witness) Errorf(string, ...any) { w.failures++ }

func fakeCase(flaw string) Case {
	return Case{
		New: func(testing.TB) tool.Tool {
			f := fake{flaw, new(atomic.Int32)}
			if flaw == "guard" {
				return guard{f}
			}
			return f
		},
		Good: []string{`{"text": "a"}`},
		Bad:  []string{`{"text": 1}`},
		Slow: `{"text": "slow"}`,
	}
}

func TestFlawlessToolPasses(t *testing.T) { Run(t, fakeCase("")) }

// Each flaw is found by the check that is there for it.
func TestFlawsAreFound(t *testing.T) {
	for _, tt := range []struct {
		flaw  string
		check func(testing.TB, Case)
	}{
		{"name", checkDeclaration},
		{"mute", checkDeclaration},
		{"undescribed", checkDeclaration},
		{"undeclared", checkDeclaration},
		{"no_object", checkDeclaration},
		{"fickle", checkDeclaration},
		{"contradictory", checkHints},
		{"guard", checkHints},
		{"failing", checkGood},
		{"gullible", checkBad},
		{"strict", checkAdditional},
		{"deaf", checkCancelledBefore},
		{"deaf", checkDeadline},
	} {
		t.Run(tt.flaw, func(t *testing.T) {
			w := &witness{TB: t}
			if tt.check(w, fakeCase("")); w.failures > 0 {
				t.Fatal("the check fails for a tool without a flaw")
			}
			if tt.check(w, fakeCase(tt.flaw)); w.failures == 0 {
				t.Error("the flaw was not found")
			}
		})
	}
}
