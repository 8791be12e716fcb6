package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault/steps"
	"loki/internal/base/fault/steps/stepstest"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// confined is a tool whose program writes go.sum, at the level that it is called with.
type confined struct {
	fake
	missing string // why there is no sandbox
	ran     *[]sandbox.Declaration
}

func newConfined() confined {
	ran := new([]sandbox.Declaration)
	return confined{ran: ran, fake: fake{name: "fake", hints: tool.Hints{Destructive: true}, call: func(_ context.Context, c tool.Call) (tool.Result, error) {
		*ran = append(*ran, c.Sandbox)
		if c.Sandbox.Level == sandbox.Read {
			return tool.Result{Refused: []sandbox.Refusal{{Access: sandbox.Writing, What: "go.sum", Level: sandbox.Write}}}, errors.New("denied")
		}
		return tool.Result{Output: "done"}, nil
	}}}
}

func (c confined) Request(call tool.Call) (tool.Request, error) {
	if c.missing != "" {
		return tool.Request{Missing: c.missing}, nil
	}
	args, err := tool.Decode[struct {
		Sandbox sandbox.Level
		Hosts   []string
		Reason  string
		Text    string
	}](call)
	if args.Sandbox == "" {
		args.Sandbox = sandbox.Read
	}
	return tool.Request{Declaration: sandbox.Declaration{Level: args.Sandbox, Hosts: args.Hosts}, Reason: args.Reason, Text: args.Text}, err
}

func judgeOf(t *testing.T, o permission.Options) *permission.Judge {
	t.Helper()
	o.Root = t.TempDir()
	j, err := permission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

const wantsWrite = `{"text":"go mod tidy","sandbox":"write","reason":"it writes go.sum\n\n    ls"}`

func TestConfinedCall(t *testing.T) {
	t.Parallel()
	rule := func(a permission.Action, l sandbox.Level) []permission.Rule {
		return []permission.Rule{{Tool: "fake", Action: a, Sandbox: l}}
	}
	const session, agent = "always for this session: write in the workspace", "always for this agent: write in the workspace"
	for _, tt := range []struct {
		name    string
		rules   permission.Rules
		args    []string
		answers []string
		auto    bool
		most    sandbox.Level
		ran     []sandbox.Level
		want    string // in the last text
	}{
		{name: "read", args: []string{`{}`}, ran: []sandbox.Level{"read"}, want: `"sandbox":"The sandbox stopped this call at level read: it writes go.sum. If the task needs that, make the call again with \"sandbox\": \"write\" and the \"reason\" for it."`},
		{name: "yes", args: []string{wantsWrite}, answers: []string{"yes"}, ran: []sandbox.Level{"write"}, want: "done"},
		{name: "no", args: []string{wantsWrite}, answers: []string{"no"}, want: "did not consent"},
		{name: "nobody", args: []string{wantsWrite}, want: "cannot be asked"},
		{name: "nobody_allow", rules: permission.Rules{Unattended: permission.UnattendedAllow}, args: []string{wantsWrite}, ran: []sandbox.Level{"write"}, want: "done"},
		{name: "in_advance", auto: true, args: []string{wantsWrite}, ran: []sandbox.Level{"write"}, want: "done"},
		{name: "in_advance_read", auto: true, args: []string{`{}`}, ran: []sandbox.Level{"read"}, want: "denied"},
		{name: "session", args: []string{wantsWrite, wantsWrite}, answers: []string{session}, ran: []sandbox.Level{"write", "write"}, want: "done"},
		{name: "agent", args: []string{wantsWrite, wantsWrite}, answers: []string{agent}, ran: []sandbox.Level{"write", "write"}, want: "done"},
		{name: "not_beyond", args: []string{wantsWrite, `{"sandbox":"full"}`}, answers: []string{session, "no"}, ran: []sandbox.Level{"write"}, want: "did not consent"},
		{name: "allowed", rules: permission.Rules{List: rule(permission.Allow, "")}, args: []string{`{}`}, ran: []sandbox.Level{"full"}, want: "done"},
		{name: "allowed_to_write", rules: permission.Rules{List: rule(permission.Allow, "write")}, args: []string{wantsWrite}, ran: []sandbox.Level{"write"}, want: "done"},
		{name: "allowed_to_write_only", rules: permission.Rules{List: rule(permission.Allow, "write")}, args: []string{`{"sandbox":"full"}`}, want: "cannot be asked"},
		{name: "denied", rules: permission.Rules{List: rule(permission.Deny, "")}, args: []string{`{}`}, want: "not allowed"},
		{name: "bound", most: "read", auto: true, args: []string{wantsWrite}, want: "run at the level read at most"},
		{name: "bound_rule", most: "write", rules: permission.Rules{List: rule(permission.Allow, "")}, args: []string{`{}`}, ran: []sandbox.Level{"write"}, want: "done"},
		{name: "asked_about", rules: permission.Rules{List: rule(permission.Ask, "")}, args: []string{`{}`}, answers: []string{"yes"}, ran: []sandbox.Level{"read"}, want: "stopped this call at level read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subject := newConfined()
			o := tool.Options{AutoConfirm: tt.auto, AtMost: tt.most, Judge: judgeOf(t, permission.Options{Rules: tt.rules, Memory: permission.NewMemory(""), Agent: "coder"}), Asker: asktest.NewScripted(tt.answers...)}
			box := newBox(t, o, subject)
			text := ""
			for _, args := range tt.args {
				var err error
				if text, _, err = box.Call(t.Context(), callFake(args), steps.Steps{}); err != nil {
					t.Fatal(err)
				}
			}
			var levels []string
			for _, d := range *subject.ran {
				levels = append(levels, string(d.Level))
			}
			var want []string
			for _, l := range tt.ran {
				want = append(want, string(l))
			}
			if strings.Join(levels, " ") != strings.Join(want, " ") || !strings.Contains(text, tt.want) {
				t.Errorf("ran at %v with %s, want %v with %s", levels, text, want, tt.want)
			}
		})
	}
}

// TestConfinedQuestion reads what a user sees about a call that was stopped before.
func TestConfinedQuestion(t *testing.T) {
	t.Parallel()
	asked := ""
	o := tool.Options{Judge: judgeOf(t, permission.Options{}), Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		asked = q.Text + "\n" + strings.Join(q.Options, "|")
		return "yes", nil
	})}
	box := newBox(t, o, newConfined())
	for _, args := range []string{`{"text":"go mod tidy"}`, wantsWrite} {
		call := callFake(args)
		if _, _, err := box.Call(t.Context(), call, steps.Steps{}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "The model says why it needs this:\n\n    it writes go.sum\\n\\n    ls\n\nThe sandbox stopped the same before:\n\n    writes go.sum\n\n" +
		"May the tool fake be run with these arguments?\n\n    " + `{"text":"go mod tidy","sandbox":"write","reason":"it writes go.sum\n\n    ls"}` + "\n\n" +
		"Level write: it can change files of the workspace, and has no network.\n\n" +
		"You are asked because no rule allows the level write.\nyes|no|always for this session: write in the workspace|edit the arguments"
	if asked != want {
		t.Errorf("asked\n%s\nwant\n%s", asked, want)
	}
}

// TestLevelOnRecord resumes calls: each runs at the level that was consented to, whatever has changed since.
func TestLevelOnRecord(t *testing.T) {
	t.Parallel()
	everything := []permission.Rule{{Tool: "fake", Action: permission.Allow}}
	for _, tt := range []struct {
		name    string
		first   tool.Options
		rules   []permission.Rule // of the process that resumes
		missing string
		ran     sandbox.Level
		want    string
	}{
		{name: "same", first: tool.Options{AutoConfirm: true}, ran: sandbox.Write, want: "done"},
		{name: "more_is_allowed_now", first: tool.Options{AutoConfirm: true}, rules: everything, ran: sandbox.Write, want: "done"},
		{name: "no_sandbox_now", first: tool.Options{AutoConfirm: true}, missing: "none", want: "allowed in the sandbox only, at the level write"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rec := new(stepstest.Recorder)
			rec.Lose = "call"
			tt.first.Judge, tt.first.Run = judgeOf(t, permission.Options{}), "r"
			if _, _, err := newBox(t, tt.first, newConfined()).Call(t.Context(), callFake(wantsWrite), steps.New(rec)); !errors.Is(err, stepstest.ErrDied) {
				t.Fatal(err)
			}
			rec.Lose = ""
			subject := newConfined()
			subject.missing = tt.missing
			o := tool.Options{Run: "r", Uncertain: tool.Retry, Judge: judgeOf(t, permission.Options{Rules: permission.Rules{List: tt.rules}})}
			text, _, err := newBox(t, o, subject).Call(t.Context(), callFake(wantsWrite), steps.New(rec))
			if err != nil || !strings.Contains(text, tt.want) {
				t.Errorf("%s, %v; want %s", text, err, tt.want)
			}
			if ran := *subject.ran; len(ran) > 1 || len(ran) == 1 && ran[0].Level != tt.ran || len(ran) == 0 && tt.ran != "" {
				t.Errorf("ran in %v, want %s", ran, tt.ran)
			}
		})
	}
}

// TestStandInIsNotConfined has a script of the user in place of a tool that would run in the sandbox.
func TestStandInIsNotConfined(t *testing.T) {
	t.Parallel()
	calls := 0
	script := fake{name: "execute_command", hints: tool.Hints{Destructive: true}, call: func(context.Context, tool.Call) (tool.Result, error) {
		calls++
		return tool.Result{}, nil
	}}
	args, err := json.Marshal(map[string]string{"command": "make"})
	if err != nil {
		t.Fatal(err)
	}
	box := newBox(t, tool.Options{Judge: judgeOf(t, permission.Options{Sandboxed: true})}, script)
	if text, failed, err := box.Call(t.Context(), chat.ToolCall{Name: "execute_command", Arguments: string(args)}, steps.Steps{}); err != nil || !failed || calls > 0 {
		t.Errorf("%s, failed %v, %v, %d calls", text, failed, err, calls)
	}
}
