//go:build unix

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/app"
	"loki/internal/base/ask/asktest"
	environment "loki/internal/base/process/environ"
	"loki/internal/tool"
	servers "loki/internal/tool/mcp"
	"loki/internal/workflow/run"
)

// TestTasksOfAServer: the program calls an agent of a second one, which continues as a task. If it is killed then, the run that resumes waits for
// that task. The user is asked what the agent asks, and a task for which no run can wait again is canceled.
func TestTasksOfAServer(t *testing.T) {
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(dir, "gate")
	environ := func(home string) []string {
		return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home, "LOKI_MCP_TEST=program"}
	}
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	entry := map[string]any{"command": program, "args": []string{"--mcp"}, "env": map[string]string{}}
	for _, v := range environ(theirs)[1:] {
		name, value, _ := strings.Cut(v, "=")
		entry["env"].(map[string]string)[name] = value
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"other": entry}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"work/keep":                     "",
		"ours/config.yaml":              "model: builtin:echo\n",
		"ours/functions/mcp.json":       string(config),
		"ours/agents/call/graph.yaml":   "name: call\nstart: c\nmcp_servers: [other]\nsettings: {on_failure: fail}\nnodes:\n  c: {type: tool, tool: \"mcp:other/slow\", arguments: {prompt: x}, state_updates: {r: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{r}}\"}\n",
		"theirs/config.yaml":            "model: builtin:echo\nmcp_server: {task_after: 10ms, sandbox: full, agents: [slow, asks]}\n",
		"theirs/agents/slow/graph.yaml": "name: slow\nstart: w\nsettings: {on_failure: fail}\nnodes:\n  w: {type: script, script: w.sh, next: e}\n  e: {type: end, output: \"it is done\"}\n",
		"theirs/agents/slow/w.sh":       "#!/bin/sh\nuntil [ -e '" + gate + "' ]; do sleep 0.1; done\necho '{}'\n",
		"theirs/agents/asks/graph.yaml": "name: asks\nstart: w\nsettings: {on_failure: fail}\nnodes:\n  w: {type: script, script: w.sh, next: who}\n  who: {type: input, question: \"Who?\", state_updates: {who: \"{{input}}\"}, next: e}\n  e: {type: end, output: \"{{who}} it is\"}\n",
		"theirs/agents/asks/w.sh":       "#!/bin/sh\nsleep 0.3\necho '{}'\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "work"))
	runs := func(home string) (list []run.History) {
		t.Helper()
		a, err := app.New(app.Options{Environ: environ(home)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		store, err := a.OpenRuns()
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		infos, err := store.Runs(t.Context(), run.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			h, err := store.History(t.Context(), info.ID)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, h)
		}
		return list
	}
	var stderr strings.Builder
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); <-time.After(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not yet: %s\n%s", what, &stderr)
			}
		}
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env, cmd.Stderr = environ(ours), &stderr
		return cmd
	}
	cmd := command("--yes", "-a", "call", "x")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until("a task is on record", func() bool {
		list := runs(ours)
		return len(list) == 1 && slices.ContainsFunc(list[0].Steps, func(s run.StepRecord) bool { return strings.HasSuffix(s.Key, tool.TaskNote) })
	})
	if err := errors.Join(cmd.Process.Kill(), os.WriteFile(gate, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	out, err := command("--yes", "--resume", runs(ours)[0].Info.ID).Output()
	if list := runs(theirs); err != nil || !strings.Contains(string(out), `"output":"it is done"`) || len(list) != 1 || list[0].Info.Status != run.Done || list[0].Info.Terms.Depth != 1 {
		t.Fatalf("%v: %s; %d of theirs\n%s", err, out, len(list), &stderr)
	}

	f, err := servers.Parse("mcp.json", config)
	if err != nil {
		t.Fatal(err)
	}
	pool := servers.NewPool(servers.Options{Child: environment.Child{Environ: environ(ours)}})
	defer func() {
		if err := pool.Shutdown(time.Second); err != nil {
			t.Error(err)
		}
	}()
	invoke := func(ctx context.Context, name string, answers ...string) (tool.Result, error) {
		t.Helper()
		scope := pool.Scope(f.Servers, servers.ScopeOptions{Asker: asktest.NewScripted(answers...)})
		defer scope.Close()
		tools, err := scope.Tools(ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(tools, func(one tool.Tool) bool { return strings.HasPrefix(one.Declaration().Name, "mcp__invoke") })
		return tools[i].Call(ctx, tool.Call{Name: "invoke", Arguments: json.RawMessage(`{"tool": "` + name + `", "arguments": {"prompt": "x"}}`)})
	}
	if r, err := invoke(t.Context(), "asks", "answer", "Ada"); err != nil || !strings.Contains(r.Output, "Ada it is") {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := invoke(t.Context(), "asks", "decline"); err == nil || !strings.Contains(err.Error(), "waits for an answer that was not given") {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the run, or the test
		defer cancel()
		until("the agent works", func() bool { return len(runs(theirs)) == 4 })
		until("it is a task", func() bool { return runs(theirs)[0].Info.Updated.Before(time.Now().Add(-time.Second)) })
	}()
	if r, err := invoke(ctx, "slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
	until("the task is canceled", func() bool { return runs(theirs)[0].Info.Status == run.Canceled })
}
