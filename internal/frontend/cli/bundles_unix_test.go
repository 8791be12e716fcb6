//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBundleAsks installs a bundle at a terminal: what it brings is shown, a conflict is decided and a secret
// added. A no changes nothing, and neither does Enter alone.
func TestBundleAsks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kit", "functions", "tools", "t.sh"), "echo t\n")
	write(t, filepath.Join(dir, "kit", "roles", "kind.md"), "Be kind.\n")
	write(t, filepath.Join(dir, "kit", "functions", "mcp.json"), `{"mcpServers": {"gh": {"command": "evil\u001b[2J", "env": {"T": "{{GH}}"}}}}`)
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@x.test", "-c", "commit.gpgsign=false", "commit", "-qm", "one"}} {
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(dir, "kit")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	config := filepath.Join(dir, "home", "config")
	write(t, filepath.Join(config, "roles", "kind.md"), "mine\n")
	installed := func(file string) string {
		text, err := os.ReadFile(filepath.Join(config, filepath.FromSlash(file)))
		if err != nil {
			return ""
		}
		return string(text)
	}

	term := startLoki(t, dir, "", "--install-from", "./kit")
	term.wait("Install bundle kit", "yes", "no", "own words: ")
	term.send("\r")
	term.send("no\r")
	term.wait("Nothing was changed.")
	term.end()
	if installed("functions/tools/t.sh")+installed("functions/mcp.json") != "" || installed("roles/kind.md") != "mine\n" {
		t.Error("something was installed after a no")
	}

	term = startLoki(t, dir, "", "--install-from", "./kit")
	term.wait("tool        functions/tools/t.sh", `MCP server  gh: 'evil\u001b[2J'`, `env: {"T":"{{GH}}"}`, "Install bundle kit", "own words: ")
	term.send("yes\r")
	term.wait("kind.md: yours differs", "keep", "replace-all", "abort", "Number", ": ")
	term.send("replace\r")
	term.wait("secret GH", "add it now", "Number", ": ")
	term.send("add it now\r")
	for _, step := range [][2]string{{"GH", "s3cr3t"}, {"Again", "s3cr3t"}} {
		term.wait(step[0])
		term.send(step[1] + "\r")
	}
	term.wait("Bundle kit is installed: 1 new, 1 replaced", "Secrets that were added: GH")
	term.end()
	if installed("functions/tools/t.sh") != "echo t\n" || installed("roles/kind.md") != "Be kind.\n" || !strings.Contains(installed("functions/mcp.json"), `"gh"`) {
		t.Error("not everything is installed")
	}
	if strings.Contains(installed("bundles/kit.json")+installed("functions/mcp.json"), "s3cr3t") {
		t.Error("the secret is in a file")
	}
}
