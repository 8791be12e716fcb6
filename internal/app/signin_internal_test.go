package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/ask/asktest"
	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

// asker answers with an error.
type asker struct{ err error }

func (a asker) Ask(context.Context, ask.Question) (string, error) { return "", a.err }

// TestSignIn: who cannot be asked, or says no, gets an error of the configuration that names the command; a run that waits for an answer is suspended.
func TestSignIn(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "functions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "functions", "mcp.json"), []byte(`{"mcpServers": {"shop": {"url": "http://127.0.0.1:1/mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Environ: []string{"LOKI_CONFIG_DIR=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home, "HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	file, err := a.MCP.ServerFile()
	if err != nil {
		t.Fatal(err)
	}
	scripted := asktest.NewScripted("no")
	for name, tt := range map[string]struct {
		asker ask.Asker
		code  fault.Code
	}{
		"none":        {nil, fault.Config},
		"unavailable": {ask.Unavailable{}, fault.Config},
		"no":          {scripted, fault.Config},
		"elsewhere":   {asktest.NewScripted("log in"), fault.Config}, // there is no terminal
		"recorded":    {asker{fault.Wrap(fault.Suspended, ask.ErrUnavailable, "waits")}, fault.Suspended},
	} {
		err := a.MCP.SignIn(t.Context(), tt.asker, file.Servers[0], oauth.Challenge{}, "")
		if fault.CodeOf(err) != tt.code || tt.code == fault.Config && (fault.HintOf(err) != "loki --authenticate mcp:shop" || !strings.Contains(err.Error(), "127.0.0.1:1")) {
			t.Errorf("%s: %v, hint %q", name, err, fault.HintOf(err))
		}
	}
	if q := scripted.Asked()[0]; !q.Consent || !strings.Contains(q.Text, "shop at 127.0.0.1:1") {
		t.Errorf("%+v", q)
	}
}
