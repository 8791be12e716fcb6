package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"loki/internal/base/process/npmtest"
	"loki/internal/base/text/sample"
)

// runClients runs a script of testdata with the packages of a directory there, and reports the checks that failed.
func runClients(t *testing.T, packages, script string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(npmtest.Install(t, filepath.Join("testdata", packages)), filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, script), text, 0o600); err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, script)}, args...)...)
	node.Dir = dir
	var stderr bytes.Buffer
	node.Stderr = &stderr
	out, err := node.Output()
	checks := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); checks++ {
		var c struct {
			Name string
			OK   bool
			Got  string
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Errorf("%s", lines.Bytes())
		} else if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Got)
		}
	}
	if err != nil && !t.Failed() || checks == 0 {
		t.Errorf("%v\n%s", err, stderr.Bytes())
	}
}

// TestClients has the official client of OpenAI, the AI SDK of Vercel and LangChain use the server.
func TestClients(t *testing.T) {
	runClients(t, "clients", "clients.mjs", newServer(t))
}

// TestFrontEnd has the server part of a chat front end use the server: a conversation of two messages, in one piece
// and as a stream.
func TestFrontEnd(t *testing.T) {
	if !sample.Full() {
		t.Skip("installs 180 packages; LOKI_TEST=full runs it")
	}
	runClients(t, "frontend", "frontend.mjs", newServer(t))
}
