package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"loki/internal/app"
)

// startOllama starts what looks like an Ollama with some models.
func startOllama(models ...string) *httptest.Server {
	type model struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	}
	var list struct {
		Models []model `json:"models"`
	}
	for _, name := range models {
		list.Models = append(list.Models, model{name, "d1"})
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			_ = json.NewEncoder(w).Encode(list) // the caller may be gone
		case "/v1/chat/completions":
			var asked struct{ Model string }
			_ = json.NewDecoder(r.Body).Decode(&asked)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"this is %s"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", asked.Model)
		default:
			http.NotFound(w, r)
		}
	}))
}

// ollama MODEL... starts what looks like an Ollama, where the program will look for it.
func ollama(ts *testscript.TestScript, _ bool, args []string) {
	server := startOllama(args...)
	ts.Defer(server.Close)
	ts.Setenv("OLLAMA_HOST", server.URL)
}

func TestNeedsModel(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		env  string
		want bool
	}{
		{"text", []string{"hello"}, "", true},
		{"command", []string{"-e", "hello"}, "", true},
		{"model_named", []string{"-m", "builtin:echo", "hello"}, "", false},
		{"model_in_environment", []string{"hello"}, "LOKI_MODEL=builtin:echo", false},
		{"list", []string{"--list-models"}, "", false},
		{"runs", []string{"--runs"}, "", false},
		{"install", []string{"--install", "agents"}, "", false},
		{"resumed", []string{"--resume"}, "", false},
		{"role", []string{"-r", "code", "hello"}, "", true},
		{"unknown_role", []string{"-r", "nobody", "hello"}, "", false},
		{"agent_that_works_offline", []string{"-a", "digest", "."}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &command{environ: emptyHome(dir, tt.env)}
			if err := c.readOnly(tt.args); err != nil {
				t.Fatal(err)
			}
			if got := c.needsModel(); got != tt.want {
				t.Errorf("%v", got)
			}
			if !c.needsSetup() {
				t.Error("there is a configuration")
			}
		})
	}
}

// readOnly reads the command line and the configuration, and does nothing.
func (c *command) readOnly(args []string) error {
	cmd := newCommand(&c.opts, func(*cobra.Command) error { return nil })
	expanded, err := expandArgs(cmd.Flags(), args)
	if err != nil {
		return err
	}
	cmd.SetArgs(expanded)
	if err := cmd.Execute(); err != nil {
		return err
	}
	c.app, err = app.New(app.Options{Environ: c.environ})
	return err
}
