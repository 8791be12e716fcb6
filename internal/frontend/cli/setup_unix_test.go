//go:build unix

package cli

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loki/assets"
	"loki/internal/llm/provider/providertest/openaitest"
)

// startLoki runs the program at a terminal that shows plain lines.
func startLoki(t *testing.T, dir, ollama string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("loki", args...)
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=dumb", "OLLAMA_HOST="+ollama)
	return newTerminal(t, cmd)
}

// TestFirstRun sets the program up at a terminal, and sees the command go on with it.
func TestFirstRun(t *testing.T) {
	server := startOllama("gemma3:latest", "llama3.2:latest")
	defer server.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "home", "config", "config.yaml")

	term := startLoki(t, dir, "127.0.0.1:1", "hello")
	term.wait("There is no configuration yet", "Number")
	term.send("No\r")
	term.wait("no model to talk to", "hint:")
	term.end()
	term = startLoki(t, dir, server.URL, "hello") // a server that runs here answers
	term.wait("this is gemma3:latest")
	term.end()
	if _, err := os.Stat(file); err == nil {
		t.Fatal("declined, and there is a configuration")
	}

	term = startLoki(t, dir, server.URL, "--info")
	term.wait("There is no configuration yet", "Number")
	term.send("\r")
	term.wait("Ollama, which runs on this machine", "openai")
	term.send("1\r")
	term.wait("gemma3:latest", "llama3.2:latest")
	term.send("2\r")
	term.wait("Saved "+file, "messages.md", "ollama:llama3.2:latest", "config_file")
	term.end()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "model: ollama:llama3.2:latest") {
		t.Fatalf("%v\n%s", err, text)
	}

	term = startLoki(t, dir, server.URL, "--info") // now there is nothing to ask
	term.wait("ollama:llama3.2:latest")
	term.end()
}

// TestFirstRunWithKey keeps the key in the vault, and the command that was given uses it.
func TestFirstRunWithKey(t *testing.T) {
	server := openaitest.New(t)
	server.Models("tiny")
	server.Script(openaitest.Text("it ", "works"))
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	term := startLoki(t, dir, "127.0.0.1:1", "hello")
	for _, step := range [][2]string{
		{"There is no configuration yet|Number", ""},
		{"Which provider do you use?", "openai-compatible"},
		{"Name of the provider", "mine"},
		{"API base", server.URL()},
		{"API key", "sk-not-in-the-open"},
		{"Which models", "tiny"},
		{"Create that file?|Number", ""},
		{"Which file?", ""},
		{"Password of the vault", "correct horse battery"},
		{"Again", "correct horse battery"},
	} {
		term.wait(strings.Split(step[0], "|")...)
		term.send(step[1] + "\r")
	}
	term.wait("it works")
	term.end()
	requests := server.Requests()
	if got := requests[len(requests)-1].Header.Get("Authorization"); got != "Bearer sk-not-in-the-open" {
		t.Errorf("Authorization: %s", got)
	}
	text, err := os.ReadFile(filepath.Join(home, "config", "config.yaml"))
	if err != nil || strings.Contains(string(text), "sk-") || !strings.Contains(string(text), "{{MINE_API_KEY}}") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestInstallAsks at a terminal before it writes over anything.
func TestInstallAsks(t *testing.T) {
	dir := t.TempDir()
	servers := filepath.Join(dir, "home", "config", "functions", "mcp.json")
	write(t, servers, "mine")
	bundled, err := fs.ReadFile(assets.MCP, "mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ key, told, want string }{
		{"n", "Nothing was changed.", "mine"},
		{"\r", "Nothing was changed.", "mine"},
		{"y", "Installed mcp_config", string(bundled)},
	} {
		term := startLoki(t, dir, "", "--install", "mcp_config")
		term.wait("will be lost. Continue? y/N: ")
		term.send(tt.key)
		term.wait(tt.told)
		term.end()
		if text, err := os.ReadFile(servers); err != nil || string(text) != tt.want {
			t.Errorf("after %q: %q, %v", tt.key, text, err)
		}
	}
}
