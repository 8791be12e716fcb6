package tool_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// eraser is a tool that the user is asked about. It counts its calls.
type eraser struct{ calls int }

func (e *eraser) Declaration() chat.Tool {
	return chat.Tool{Name: "erase", Description: "Erase.", Parameters: json.RawMessage(`{"type":"object"}`)}
}
func (e *eraser) Hints() tool.Hints { return tool.Hints{Destructive: true} }
func (e *eraser) Call(context.Context, tool.Call) (tool.Result, error) {
	e.calls++
	return tool.Result{Output: "erased"}, nil
}

// erasing makes one call of an eraser with rules, and an asker who gives the answers.
func erasing(t *testing.T, o tool.Options, p permission.Options, times int) (text string, calls int, err error) {
	t.Helper()
	e := &eraser{}
	set, err := tool.NewSet(e)
	if err != nil {
		t.Fatal(err)
	}
	p.Root = t.TempDir()
	if o.Judge, err = permission.New(p); err != nil {
		t.Fatal(err)
	}
	o.Tools = set
	box := tool.NewBox(o)
	for range times {
		text, _, err = box.Call(t.Context(), chat.ToolCall{ID: "1", Name: "erase", Arguments: `{"path":"a"}`}, steps.Steps{})
	}
	return text, e.calls, err
}

func TestJudgedCalls(t *testing.T) {
	t.Parallel()
	rule := func(a permission.Action) permission.Rules {
		return permission.Rules{List: []permission.Rule{{Tool: "erase", Action: a}}}
	}
	always := func(scope string) string { return "always for this " + scope + ": all calls of erase" }
	for _, tt := range []struct {
		name    string
		rules   permission.Rules
		answers []string
		auto    bool
		times   int
		calls   int
		want    string // in the last text
		suspend bool
	}{
		{name: "allowed", rules: rule(permission.Allow), times: 1, calls: 1, want: "erased"},
		{name: "denied", rules: rule(permission.Deny), times: 1, want: "it is not allowed (rule: deny erase)"},
		{name: "denied_in_spite_of_consent", rules: rule(permission.Deny), auto: true, times: 1, want: "it is not allowed"},
		{name: "auto", rules: rule(permission.Ask), auto: true, times: 1, calls: 1, want: "erased"},
		{name: "yes", answers: []string{"yes"}, times: 1, calls: 1, want: "erased"},
		{name: "no", answers: []string{"no"}, times: 1, want: "the user did not consent."},
		{name: "no_because", answers: []string{"no, because it is in use"}, times: 1, want: "and said: no, because it is in use"},
		{name: "each_time", answers: []string{"yes", "no"}, times: 2, calls: 1, want: "did not consent"},
		{name: "session", answers: []string{always("session")}, times: 3, calls: 3, want: "erased"},
		{name: "agent", answers: []string{always("agent")}, times: 3, calls: 3, want: "erased"},
		{name: "nearly_always", answers: []string{"always for this session", "no"}, times: 1, want: "did not consent"},
		{name: "nobody", times: 1, want: "the user cannot be asked here"},
		{name: "nobody_allow", rules: permission.Rules{Unattended: permission.UnattendedAllow}, times: 1, calls: 1, want: "erased"},
		{name: "nobody_suspend", rules: permission.Rules{Unattended: permission.UnattendedSuspend}, times: 1, suspend: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "permissions.yaml")
			o := tool.Options{AutoConfirm: tt.auto, Asker: asktest.NewScripted(tt.answers...)}
			text, calls, err := erasing(t, o, permission.Options{Rules: tt.rules, Memory: permission.NewMemory(file), Agent: "coder"}, tt.times)
			if tt.suspend {
				if fault.CodeOf(err) != fault.Suspended {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || calls != tt.calls || !strings.Contains(text, tt.want) {
				t.Errorf("%d calls, %s, %v; want %d, %s", calls, text, err, tt.calls, tt.want)
			}
			if granted := permission.NewMemory(file).Grants("coder"); (len(granted) > 0) != (tt.name == "agent") {
				t.Errorf("kept %v", granted)
			}
		})
	}
}

func TestConsentQuestion(t *testing.T) {
	t.Parallel()
	q := tool.ConsentQuestion{Text: "Run it?", Reason: "no rule allows git push", Always: []permission.Grant{{Tool: "execute_command", Command: "git push *"}}, Agent: "coder"}
	asked := q.Ask(ask.Question{Node: "n"})
	if got := strings.Join(asked.Options, "|"); got != "yes|no|always for this session: git push *|always for this agent: git push *" || asked.Node != "n" {
		t.Errorf("%s, %+v", got, asked)
	}
	if !strings.Contains(asked.Text, "Run it?") || !strings.Contains(asked.Text, "no rule allows git push") {
		t.Error(asked.Text)
	}
	q.Agent = ""
	if n := len(q.Ask(ask.Question{}).Options); n != 3 {
		t.Errorf("%d options without an agent", n)
	}
	const run = "always for this run: git push *"
	if got := q.Answer(run); !got.Yes || got.Scope != "" || got.Grants != nil { // what a server offered
		t.Errorf("%q: %+v", run, got)
	}
	q.ForRun = true
	if got := q.Ask(ask.Question{}).Options; len(got) != 3 || got[2] != run || q.Answer(run).Scope != permission.Run {
		t.Errorf("for a run: %q, %+v", got, q.Answer(run))
	}
	q.ForRun = false
	for text, want := range map[string]tool.ConsentAnswer{
		" Y ": {Yes: true}, "YES": {Yes: true}, "no": {}, "": {}, "later": {Reason: "later"},
		"always for this session: git push *": {Yes: true, Scope: permission.Session},
		"always for this session: rm *":       {Reason: "always for this session: rm *"},
	} {
		if got := q.Answer(text); got.Yes != want.Yes || got.Scope != want.Scope || got.Reason != want.Reason || len(got.Grants) > 0 != (want.Scope != "") {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
