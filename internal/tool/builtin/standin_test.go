package builtin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/environ"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/permission"
)

// ownScript is a script of the user with the name of a native tool.
type ownScript struct {
	name  string
	hints tool.Hints
	calls int
}

func (s *ownScript) Declaration() chat.Tool          { return chat.Tool{Name: s.name, Description: "Mine."} }
func (s *ownScript) Hints() tool.Hints               { return s.hints }
func (s *ownScript) File() string                    { return s.name + ".sh" }
func (s *ownScript) Source() (string, []byte, error) { return s.File(), nil, nil }
func (s *ownScript) Call(context.Context, tool.Call) (tool.Result, error) {
	s.calls++
	return tool.Result{Output: "mine"}, nil
}

// TestStandIn checks that a script with the name of a native tool asks where that one
// would, and only there.
func TestStandIn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ asks, quiet []string }{
		"execute_command":  {asks: []string{`{"command":"touch x"}`, `{"cmd":"touch x"}`}, quiet: []string{`{"command":"ls"}`}},
		"execute_py_code":  {asks: []string{`{"code":"1"}`, `{"source":"1"}`}},
		"execute_sql_code": {asks: []string{`{"code":"drop table a"}`, `{"query":"drop table a"}`}, quiet: []string{`{"code":"select 1"}`}},
		"fs_mkdir":         {asks: []string{`{"path":"/elsewhere/x"}`, `{}`}, quiet: []string{`{"path":"sub"}`}},
		"fs_patch": {
			asks:  []string{`{"path":"there","contents":"--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"}`, `{"path":"there","contents":"<<<< another format"}`},
			quiet: []string{`{"path":"there","contents":"--- a\n+++ b\n@@ -1 +1 @@\n-old\n+old\n"}`},
		},
		"fs_rm":       {asks: []string{`{"path":"there"}`, `{"path":"."}`, `{"path":"gone"}`}},
		"fs_write":    {asks: []string{`{"path":"there","contents":"new"}`, `{"path":"new","content":"x"}`, `{"path":"/elsewhere/x","contents":"x"}`}, quiet: []string{`{"path":"new","contents":"x"}`}},
		"send_mail":   {asks: []string{`{"recipient":"a@b","subject":"s","body":"b"}`, `{"to":"a@b"}`}},
		"send_twilio": {asks: []string{`{"to_number":"+1","message":"m"}`, `{}`}},
		// They never ask inside of the workspace.
		"fs_cat": {asks: []string{`{"path":"/etc/hostname"}`}, quiet: []string{`{"path":"there"}`}},
		"fs_ls":  {quiet: []string{`{"path":"."}`}},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, native := range builtin.Tools(builtin.Options{Dir: dir, Child: environ.Child{Environ: []string{"HOME=" + dir, "USQL_DSN=sqlite:x.db", "SHELL=/bin/sh"}}}) {
		name := native.Declaration().Name
		tt, ok := cases[name]
		if _, guard := native.(tool.Guard); !ok && (guard || native.Hints().Destructive) {
			t.Errorf("%s asks and is not tried", name)
		}
		for _, args := range tt.asks {
			checkStandIn(t, dir, native, "", args, true)
		}
		for _, args := range tt.quiet {
			checkStandIn(t, dir, native, "", args, false)
		}
		if len(tt.asks) > 0 && name != "fs_cat" && name != "fs_mkdir" { // a rule for a tool does not lead out of the workspace
			checkStandIn(t, dir, native, permission.Allow, tt.asks[0], false)
			checkStandIn(t, dir, native, permission.Deny, tt.asks[0], true)
		}
	}
}

// checkStandIn checks whether a script that stands in for native runs without consent, and
// with it, under a rule for the tool if there is one.
func checkStandIn(t *testing.T, dir string, native tool.Tool, rule permission.Action, args string, needsConsent bool) {
	t.Helper()
	name := native.Declaration().Name
	var rules permission.Rules
	if rule != "" {
		rules.List = []permission.Rule{{Tool: name, Action: rule}}
	}
	judge, err := permission.New(permission.Options{Rules: rules, Root: dir, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, consents := range []bool{false, true} {
		own := &ownScript{name: name}
		set, err := tool.NewSet(builtin.StandIn(own, native))
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		box := tool.NewBox(tool.Options{Tools: set, Judge: judge, Asker: ask.Func(func(context.Context, ask.Question) (string, error) {
			asked++
			return yesOrNo(consents), nil
		})})
		text, _, err := box.Call(t.Context(), chat.ToolCall{ID: "1", Name: name, Arguments: args}, steps.Steps{})
		if err != nil {
			t.Fatal(err)
		}
		runs := (!needsConsent || consents) && rule != permission.Deny
		if asks := needsConsent && rule != permission.Deny; (asked > 0) != asks || (own.calls > 0) != runs {
			t.Errorf("%s %s, rule %q, consent %t: asked %d times, ran %d times; %s", name, args, rule, consents, asked, own.calls, text)
		}
	}
}

// TestStandInHints checks that a script's own words count where they are stricter.
func TestStandInHints(t *testing.T) {
	t.Parallel()
	for _, native := range builtin.Tools(builtin.Options{Dir: t.TempDir()}) {
		name := native.Declaration().Name
		s := builtin.StandIn(&ownScript{name: name, hints: tool.Hints{ReadOnly: true}}, native).(tool.StandIn)
		if got, want := s.StandsInFor(), native.Hints(); got.ReadOnly != want.ReadOnly || got.Destructive != want.Destructive || !s.Hints().ReadOnly {
			t.Errorf("%s: judged by %+v, want %+v", name, got, want)
		}
		s = builtin.StandIn(&ownScript{name: name, hints: tool.Hints{Destructive: true}}, native).(tool.StandIn)
		if got := s.StandsInFor(); got.ReadOnly || !got.Destructive || s.Consent(tool.Call{Name: name, Arguments: json.RawMessage(`{}`)}) == "" {
			t.Errorf("%s, a destructive script: judged by %+v, without a question", name, got)
		}
	}
}

// TestStandInChange checks that a call that needed no consent is not made if it needs it
// by then.
func TestStandInChange(t *testing.T) {
	t.Parallel()
	dir := files(t, nil)
	own := &ownScript{name: "fs_write"}
	set, err := tool.NewSet(builtin.StandIn(own, named(t, at(dir), "fs_write")))
	if err != nil {
		t.Fatal(err)
	}
	box := tool.NewBox(tool.Options{Tools: set, Judge: meddler(func() { write(t, filepath.Join(dir, "new"), "of another call") })})
	_, failed, err := box.Call(t.Context(), chat.ToolCall{Name: "fs_write", Arguments: `{"path":"new","contents":"x"}`}, steps.Steps{})
	if err != nil || !failed || own.calls > 0 {
		t.Errorf("failed %v, error %v, %d calls", failed, err, own.calls)
	}
}
