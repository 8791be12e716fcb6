//go:build unix

package cli

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
)

// TestTerminal shows a run on a real terminal: one that obeys escape sequences, and
// one that says it does not, which must get none.
func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		term    string
		escapes bool
	}{{"xterm-256color", true}, {"dumb", false}} {
		t.Run(tt.term, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent", "graph.yaml"), `
name: slow
start: work
nodes:
  work: {type: script, script: work.sh, next: done}
  done: {type: end, output: "the answer"}
`)
			write(t, filepath.Join(dir, "agent", "work.sh"), "sleep 0.5; echo '{}'\n") // so long that it is shown at work
			cmd := exec.Command("loki", "-a", "./agent", "x")
			cmd.Dir = dir
			cmd.Env = append(emptyHome(dir), "TERM="+tt.term, "NO_COLOR=1")
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			shown, _ := io.ReadAll(screen) // ends with an error when the program closes the terminal
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, shown)
			}
			if !strings.Contains(string(shown), "work (script) done") || !strings.Contains(string(shown), "the answer") {
				t.Errorf("the terminal shows %q", shown)
			}
			if got := strings.Contains(string(shown), "\x1b["); got != tt.escapes {
				t.Errorf("escape sequences: %v, want %v\n%q", got, tt.escapes, shown)
			}
		})
	}
}

// TestVerboseTerminal: what a reply used is said below it, also if it came in one piece and
// is laid out.
func TestVerboseTerminal(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("loki", "-v", "-m", "builtin:echo", "the answer")
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=1")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	shown, _ := io.ReadAll(screen)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	if text, used := strings.Index(string(shown), "the answer"), strings.Index(string(shown), "tokens in"); text < 0 || used < text {
		t.Errorf("the terminal shows %q", shown)
	}
}

// TestSlowTerminal talks over a link so slow that the terminal says the color of its
// background only after the model has answered. Nothing of it may be shown or typed into the
// shell, and the next command need not ask again.
func TestSlowTerminal(t *testing.T) {
	for name, command := range map[string]string{"terminal": "loki first", "pipe": "git --version | loki first"} {
		t.Run(name, func(t *testing.T) { slowTerminal(t, command) })
	}
}

func slowTerminal(t *testing.T, command string) {
	dir := t.TempDir()
	answered := make(chan struct{}, 2)
	server := openaitest.New(t)
	server.Always(func(c *wiretest.Call) {
		openaitest.Text("the answer")(c)
		answered <- struct{}{}
	})
	cmd := exec.Command("sh", "-c", command+`; loki second; IFS= read -r line; echo "read <$line>"`)
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "NO_COLOR=", "TERM=xterm-256color", "XDG_CACHE_HOME="+dir,
		"LOKI_PLATFORM=openai:m", "OPENAI_API_KEY=k", "OPENAI_API_BASE="+server.URL())
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var shown bytes.Buffer
	buf := make([]byte, 256)
	asked, typed := false, false
	for {
		n, err := screen.Read(buf)
		shown.Write(buf[:n])
		if !asked && bytes.Contains(shown.Bytes(), []byte("\x1b]11;?")) {
			asked = true
			<-answered
			if _, err := screen.WriteString("\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;22c"); err != nil {
				t.Fatal(err)
			}
		}
		if !typed && bytes.Count(shown.Bytes(), []byte("the answer")) == 2 {
			typed = true
			if _, err := screen.WriteString("typed\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown.Bytes())
	}
	if !strings.Contains(shown.String(), "read <typed>") || strings.Contains(shown.String(), "rgb:") {
		t.Errorf("the terminal shows %q", shown.String())
	}
	if n := strings.Count(shown.String(), "\x1b]11;?"); n != 1 {
		t.Errorf("the terminal was asked %d times", n)
	}
}

// TestDynamicInstructionsAsk: the script that writes an agent's instructions asks the user by its
// standard streams, and the question shows although its line does not end.
func TestDynamicInstructionsAsk(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "reader", "config.yaml"), "name: reader\nmodel: builtin:echo\ndynamic_instructions: true\n")
	write(t, filepath.Join(dir, "reader", "tools.sh"), `# @cmd Writes the instructions.
_instructions() {
  read -r -p "Which file? " file
  echo "You know $file." >>"$LLM_OUTPUT"
}
eval "$(argc --argc-eval "$0" "$@")"
`)
	cmd := exec.Command("loki", "-a", "./reader", "--dry-run", "x")
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=xterm-256color", "NO_COLOR=1")
	screen, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var shown bytes.Buffer
	buf := make([]byte, 256)
	answered := false
	for {
		n, err := screen.Read(buf)
		shown.Write(buf[:n])
		if !answered && strings.Contains(shown.String(), "Which file? ") {
			answered = true
			if _, err := io.WriteString(screen, "notes.json\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break // the program has closed the terminal
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(shown.String(), "You know notes.json.") {
		t.Errorf("%v, the terminal shows %q", err, shown.String())
	}
}
