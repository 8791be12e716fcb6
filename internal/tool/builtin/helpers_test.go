package builtin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/permission"
)

// environ is that of the tests' commands.
func testEnviron(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}, more...)
}

// named returns one of the tools.
func named(t testing.TB, o builtin.Options, name string) tool.Tool {
	t.Helper()
	for _, one := range builtin.Tools(o) {
		if one.Declaration().Name == name {
			return one
		}
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}

// asks makes a call the way the program does. The user says yes to everything; what they
// are asked is returned.
func asks(t testing.TB, o builtin.Options, name string, args map[string]any) (text string, failed bool, question string) {
	t.Helper()
	set, err := tool.NewSet(named(t, o, name))
	if err != nil {
		t.Fatal(err)
	}
	box := tool.NewBox(tool.Options{Tools: set, Run: "run-1", Asker: ask.Func(func(_ context.Context, q ask.Question) (string, error) {
		question = q.Text
		return "yes", nil
	})})
	arguments, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	text, failed, err = box.Call(t.Context(), chat.ToolCall{ID: "1", Name: name, Arguments: string(arguments)}, steps.Steps{}.At("tool/1/1"))
	if err != nil {
		t.Fatal(err)
	}
	return text, failed, question
}

// output is what a call that works prints.
func output(t testing.TB, o builtin.Options, name string, args map[string]any) string {
	t.Helper()
	text, failed, _ := asks(t, o, name, args)
	var told struct {
		Output *string `json:"output"`
	}
	if failed {
		t.Fatalf("%s failed: %s", name, text)
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Output == nil {
		return text
	}
	return *told.Output
}

// files makes files in a new directory, by their paths with slashes.
func files(t testing.TB, contents map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range contents {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns what is in a file.
func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// env is a Getenv of these variables.
func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// site serves pages, and returns the address.
func site(t testing.TB, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// meddler leaves every call to the tool, and does something between the question whether it
// needs consent and the call.
type meddler func()

func (m meddler) Judge(permission.Call) permission.Verdict {
	m()
	return permission.Verdict{Action: permission.Allow}
}

func (m meddler) Remember(context.Context, permission.Scope, []permission.Grant) error { return nil }

func (m meddler) UnattendedPolicy() permission.Unattended { return permission.UnattendedDeny }
func (m meddler) Agent() string                           { return "" }

func write(t testing.TB, file, contents string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}
