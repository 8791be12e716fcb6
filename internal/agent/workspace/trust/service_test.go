package trust_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"loki/internal/agent"
	"loki/internal/agent/workspace/trust"
	"loki/internal/base/ask"
	"loki/internal/base/process/sandbox"
	"loki/internal/setup/config"
)

// strange returns a service and an agent that came with a directory and wants to run a script.
func strange(t *testing.T) (*trust.Service, agent.Agent) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"graph.yaml": "name: evil\nstart: a\nnodes:\n  a: {type: script, script: a.sh, next: done}\n  done: {type: end, output: x}\n",
		"a.sh":       "echo '{}'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	a := trust.New(trust.Options{
		Origins: trust.Origins{
			Agents: &agent.Library{Paths: config.Paths{ConfigDir: home, AgentsDir: filepath.Join(home, "agents")}}, Config: &config.Config{},
			Bundled: func(string) bool { return false },
		},
		Sandbox: func() (*sandbox.Sandbox, error) { return nil, errors.New("there is none") },
		Serving: func() bool { return false },
	})
	of, _, err := a.Agents.Load(a.Agents.At(dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	return a, of
}

// TestWaitForTrust: a child that waits for a question which another one asks ends with its context, and is not asked
// again once there is an answer.
func TestWaitForTrust(t *testing.T) {
	t.Parallel()
	a, of := strange(t)
	asked, answer, done := make(chan struct{}), make(chan string), make(chan error)
	first := ask.Func(func(context.Context, ask.Question) (string, error) {
		close(asked)
		return <-answer, nil
	})
	go func() { done <- a.Settle(t.Context(), of, first) }() // ends with the answer
	<-asked
	never := ask.Func(func(context.Context, ask.Question) (string, error) { return "", errors.New("asked twice") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Settle(ctx, of, never); !errors.Is(err, context.Canceled) {
		t.Errorf("while another child asks: %v", err)
	}
	answer <- "trust it"
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := a.Settle(t.Context(), of, never); err != nil {
		t.Error(err)
	}
	if status := a.Of(t.Context(), of); !status.Trusted {
		t.Errorf("%+v", status)
	}
}

// TestInterruptedTrust: a question that was interrupted is asked again, and one that was answered is not.
func TestInterruptedTrust(t *testing.T) {
	t.Parallel()
	a, of := strange(t)
	interrupted, questions := errors.New("interrupted"), 0
	asker := ask.Func(func(context.Context, ask.Question) (string, error) {
		if questions++; questions == 1 {
			return "", interrupted
		}
		return "run it restricted", nil
	})
	if err := a.Settle(t.Context(), of, asker); !errors.Is(err, interrupted) {
		t.Errorf("interrupted: %v", err)
	}
	for range 2 {
		if err := a.Settle(t.Context(), of, asker); err != nil {
			t.Error(err)
		}
	}
	if questions != 2 {
		t.Errorf("asked %d times", questions)
	}
}

// TestAddWritten: what the program wrote is trusted with what was trusted before, and nothing else.
func TestAddWritten(t *testing.T) {
	t.Parallel()
	const script, other = "a.sh", "b.sh"
	tests := map[string]struct {
		known bool              // the directory was trusted before
		there map[string]string // what is there in the end, beside the graph
		wrote map[string]string
		want  bool
	}{
		"trusted_before":     {true, map[string]string{script: "new"}, map[string]string{script: "new"}, true},
		"another_text":       {true, map[string]string{script: "newer"}, map[string]string{script: "new"}, false},
		"unknown_file":       {true, map[string]string{script: "new", other: "x"}, map[string]string{script: "new"}, false},
		"empty_unknown_file": {true, map[string]string{script: "new", other: ""}, map[string]string{script: "new"}, false},
		"file_gone":          {true, map[string]string{other: "x"}, map[string]string{other: "x"}, false},
		"not_trusted_before": {false, map[string]string{script: "new"}, map[string]string{script: "new"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, of := strange(t)
			if tt.known {
				if err := a.Add(t.Context(), a.Of(t.Context(), of).Content); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(of.Dir, script)); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.there {
				if err := os.WriteFile(filepath.Join(of.Dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wrote := make(map[string][]byte)
			for name, text := range tt.wrote {
				wrote[filepath.Join(of.Dir, name)] = []byte(text)
			}
			if err := a.AddWritten(t.Context(), of.Dir, wrote); err != nil {
				t.Fatal(err)
			}
			if got := a.OfDir(t.Context(), of.Dir).Trusted; got != tt.want {
				t.Errorf("trusted: %v", got)
			}
		})
	}
}
