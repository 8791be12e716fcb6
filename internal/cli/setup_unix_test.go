//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

	term := startLoki(t, dir, server.URL, "hello")
	term.wait("There is no configuration yet")
	term.send("No\r")
	term.end()
	if _, err := os.Stat(file); err == nil {
		t.Fatal("declined, and there is a configuration")
	}

	term = startLoki(t, dir, server.URL, "--info")
	term.wait("There is no configuration yet")
	term.send("\r")
	term.wait("Ollama, which runs on this machine", "openai")
	term.send("1\r")
	term.wait("gemma3:latest", "llama3.2:latest")
	term.send("2\r")
	term.wait("Saved "+file, "ollama:llama3.2:latest", "config_file")
	term.end()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "model: ollama:llama3.2:latest") {
		t.Fatalf("%v\n%s", err, text)
	}

	term = startLoki(t, dir, server.URL, "--info") // now there is nothing to ask
	term.wait("ollama:llama3.2:latest")
	term.end()
}

// TestInstallAsks at a terminal before it writes over anything.
func TestInstallAsks(t *testing.T) {
	dir := t.TempDir()
	servers := filepath.Join(dir, "home", "config", "functions", "mcp.json")
	write(t, servers, "mine")
	for _, tt := range []struct{ key, told, want string }{
		{"n", "Nothing was changed.", "mine"},
		{"\r", "Nothing was changed.", "mine"},
		{"y", "Installed mcp_config", noServers},
	} {
		term := startLoki(t, dir, "", "--install", "mcp_config")
		term.wait("will be lost. Go on? y/N: ")
		term.send(tt.key)
		term.wait(tt.told)
		term.end()
		if text, err := os.ReadFile(servers); err != nil || string(text) != tt.want {
			t.Errorf("after %q: %q, %v", tt.key, text, err)
		}
	}
}
