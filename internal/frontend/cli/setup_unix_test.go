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
	"loki/internal/app"
	"loki/internal/llm/provider/providertest/openaitest"
)

// startLoki runs the program at a terminal that shows plain lines.
func startLoki(t *testing.T, dir, ollama string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command("loki", args...)
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=dumb", "OLLAMA_HOST="+ollama, "LOKI_VAULT_KEYCHAIN=false")
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
	term.wait("Ollama, local: runs on this machine", "openai")
	term.send("1\r")
	term.wait("gemma3:latest", "llama3.2:latest")
	term.send("2\r")
	term.wait("Saved "+file, "The default model is ollama:llama3.2:latest", "messages.md", "config_file")
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
	} {
		term.wait(strings.Split(step[0], "|")...)
		term.send(step[1] + "\r")
	}
	term.wait("The key is encrypted in ", "has the password that opens it", "it works")
	term.end()
	if info, err := os.Stat(filepath.Join(home, ".loki_password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password of the vault: %v, %v", info, err)
	}
	requests := server.Requests()
	if got := requests[len(requests)-1].Header.Get("Authorization"); got != "Bearer sk-not-in-the-open" {
		t.Errorf("Authorization: %s", got)
	}
	text, err := os.ReadFile(filepath.Join(home, "config", "config.yaml"))
	if err != nil || strings.Contains(string(text), "sk-") || !strings.Contains(string(text), "{{MINE_API_KEY}}") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestSetUpAgain changes the configuration that there is, or makes the first one.
func TestSetUpAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "home", "config", "config.yaml")
	write(t, file, "# mine\nmodel: builtin:echo # for now\n")
	term := startLoki(t, dir, "127.0.0.1:1", "--setup")
	term.wait("What do you want to set up?", "Default model: builtin:echo", "Add a provider; there is: none", "Editor keys: emacs")
	term.send("Editor keys: emacs\r")
	term.wait("Which keys")
	term.send("vi\r")
	term.wait("Saved keybindings: vi in ", "Editor keys: vi", "Done")
	term.send("Done\r")
	term.end()
	if text, err := os.ReadFile(file); err != nil || string(text) != "# mine\nmodel: builtin:echo # for now\nkeybindings: vi\n" {
		t.Errorf("%v\n%s", err, text)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	term = startLoki(t, dir, "127.0.0.1:1", "--setup")
	term.wait("Which provider do you use?")
	term.send("\x03")
	term.end()
}

// TestOptionWords: a word that is a command elsewhere is not sent to a model before the user has agreed to that.
func TestOptionWords(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ word, key, want string }{
		{"version", "y", "loki " + app.Version},
		{"models", "y", "builtin:echo"},
		{"help", "y", "Usage: loki"},
		{"login", "y", "Which provider do you use?"},
		{"models", "n", "nothing was sent"},
		{"models", "\r", "loki -- models sends the text"},
	} {
		term := startLoki(t, dir, "127.0.0.1:1", tt.word)
		term.wait("would be sent to a model. Run loki --", "y/N: ")
		term.send(tt.key)
		term.wait(tt.want)
		if tt.word == "login" {
			term.send("\x03")
		}
		term.end()
	}
	term := startLoki(t, dir, "127.0.0.1:1", "-m", "builtin:echo", "--", "models")
	term.wait("models")
	term.end()
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
