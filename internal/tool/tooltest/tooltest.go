// Package tooltest is the suite that every tool passes.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
)

// patience bounds steps that should take almost no time. It is long because a
// loaded machine is slow; reaching it fails a test.
const patience = 20 * time.Second

// deadline ends a slow call. A tool that obeys its context passes with any deadline.
const deadline = 30 * time.Millisecond

// parallel is how many calls run at once in the test of concurrency.
const parallel = 8

// Case is a tool and calls of it, whose arguments are JSON objects.
type Case struct {
	// New returns the tool, ready for calls.
	New func(t testing.TB) tool.Tool
	// Good are arguments with which every call succeeds; at least one.
	Good []string
	// Bad are arguments that the tool fails with. Missing required arguments, which the
	// suite finds out from the declaration, need not be among them.
	Bad []string
	// Slow are arguments of a call that takes much longer than patience; empty if the
	// tool has no slow calls.
	Slow string
}

// Run runs the suite.
func Run(t *testing.T, c Case) {
	if len(c.Good) == 0 {
		t.Fatal("the case has no good arguments, so the suite would test nothing")
	}
	for _, check := range []struct {
		name string
		run  func(testing.TB, Case)
	}{
		{"declaration", checkDeclaration},
		{"hints", checkHints},
		{"good_arguments", checkGood},
		{"bad_arguments", checkBad},
		{"additional_argument", checkAdditional},
		{"concurrent_calls", checkConcurrent},
		{"cancelled_before_the_call", checkCancelledBefore},
		{"deadline", checkDeadline},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, c) })
	}
}

// schema is the part of a declaration's parameters that the suite checks.
type schema struct {
	Type       string `json:"type"`
	Properties map[string]struct {
		Type        string `json:"type"`
		Description string `json:"description"`
	} `json:"properties"`
	Required []string `json:"required"`
}

func parameters(t testing.TB, d chat.Tool) schema {
	t.Helper()
	s := schema{Type: "object"}
	if d.Parameters != nil {
		s.Type = ""
		if err := json.Unmarshal(d.Parameters, &s); err != nil {
			t.Fatalf("the parameters are not a JSON Schema: %v", err)
		}
	}
	return s
}

func checkDeclaration(t testing.TB, c Case) {
	subject := c.New(t)
	d := subject.Declaration()
	if _, err := tool.NewSet(subject); err != nil {
		t.Error(err)
	}
	if d.Description == "" {
		t.Error("the tool has no description")
	}
	s := parameters(t, d)
	if s.Type != "object" {
		t.Errorf("the parameters are of type %q, want object", s.Type)
	}
	for name, p := range s.Properties {
		if p.Description == "" {
			t.Errorf("parameter %s has no description", name)
		}
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("parameter %s is required, but not declared", name)
		}
	}
	if again := subject.Declaration(); !reflect.DeepEqual(d, again) {
		t.Errorf("the second declaration is another: %+v, then %+v", d, again)
	}
}

func checkHints(t testing.TB, c Case) {
	subject := c.New(t)
	h := subject.Hints()
	if h.ReadOnly && h.Destructive {
		t.Error("the tool is both read-only and destructive")
	}
	if _, guards := subject.(tool.Guard); guards && !h.Destructive {
		t.Error("the tool asks for consent, but does not say that it is destructive")
	}
	if h.Timeout < 0 && h.Timeout != tool.Unlimited || h.MaxOutput < 0 {
		t.Errorf("limits of %v and %d bytes", h.Timeout, h.MaxOutput)
	}
	if !reflect.DeepEqual(h, subject.Hints()) {
		t.Error("the second hints are others")
	}
}

// call makes a call as the program does, where no user can be asked.
func call(ctx context.Context, subject tool.Tool, arguments string) (text string, failed bool, err error) {
	set, err := tool.NewSet(subject)
	if err != nil {
		return "", false, err
	}
	box := tool.NewBox(tool.Options{Tools: set, AutoConfirm: true})
	return box.Call(ctx, chat.ToolCall{ID: "1", Name: set.Names()[0], Arguments: arguments}, steps.Steps{})
}

func wantSuccess(ctx context.Context, t testing.TB, subject tool.Tool, arguments string) {
	t.Helper()
	if text, failed, err := call(ctx, subject, arguments); err != nil || failed {
		t.Errorf("%s: result %q, error %v", arguments, text, err)
	}
}

func wantFailure(t testing.TB, subject tool.Tool, arguments string) {
	t.Helper()
	text, failed, err := call(t.Context(), subject, arguments)
	if err != nil || !failed {
		t.Errorf("%s: result %q, failed %v, error %v; want a failed result", arguments, text, failed, err)
		return
	}
	var told struct {
		Error string `json:"tool_call_error"`
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Error == "" {
		t.Errorf("%s: the model does not read what went wrong: %s", arguments, text)
	}
}

func checkGood(t testing.TB, c Case) {
	subject := c.New(t)
	for _, args := range c.Good {
		wantSuccess(t.Context(), t, subject, args)
	}
}

func checkBad(t testing.TB, c Case) {
	subject := c.New(t)
	for _, args := range append(slices.Clone(c.Bad), `[]`, `"text"`, `{`) {
		wantFailure(t, subject, args)
	}
}

// withEdit returns an object as edit leaves it.
func withEdit(t testing.TB, arguments string, edit func(map[string]json.RawMessage)) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &members); err != nil {
		t.Fatalf("good arguments %s: %v", arguments, err)
	}
	edit(members)
	data, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func checkAdditional(t testing.TB, c Case) {
	args := withEdit(t, c.Good[0], func(m map[string]json.RawMessage) { m["made_up"] = json.RawMessage("1") })
	wantSuccess(t.Context(), t, c.New(t), args)
}

func checkConcurrent(t testing.TB, c Case) {
	subject := c.New(t)
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() { wantSuccess(t.Context(), t, subject, c.Good[0]) })
	}
	wg.Wait()
}

// checkCancelledBefore goes past the box, which would not even make the call.
func checkCancelledBefore(t testing.TB, c Case) {
	subject := c.New(t)
	if subject.Hints().ReadOnly {
		t.Skip("a tool that changes nothing may finish")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := subject.Call(ctx, tool.Call{Name: subject.Declaration().Name, Arguments: json.RawMessage(c.Good[0])})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("result %+v and the error %v, want context.Canceled", r, err)
	}
}

func checkDeadline(t testing.TB, c Case) {
	if c.Slow == "" {
		t.Skip("no call of this tool is slow")
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	began := time.Now()
	text, _, err := call(ctx, c.New(t), c.Slow)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("result %q and the error %v, want context.DeadlineExceeded", text, err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("the call returned %v after it began, although its time was up after %v", took, deadline)
	}
}
