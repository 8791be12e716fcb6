//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// prompt is what the shells of these tests show when they are ready.
const prompt = "@>"

// realShell is a shell at a terminal.
type realShell struct {
	name   string
	args   []string
	begin  []string // sets the prompt and whatever else is needed, one line each
	two    string   // an expression that the shell makes a 2 of
	source string   // reads the script that a command, in place of %, prints

	register string // prints the script that registers the program
}

var realShells = []realShell{
	{"bash", []string{"--norc", "--noprofile", "-i"}, []string{`bind 'set enable-bracketed-paste off'`, `PS1='@''> '`}, "$((1+1))", "source <(%)", "COMPLETE=bash loki"},
	{"zsh", []string{"-f", "-i"}, []string{`autoload -Uz compinit; compinit -u -D`, `unsetopt zle_bracketed_paste prompt_sp; PS1='@''> '`}, "$((1+1))", "source <(%)", "COMPLETE=zsh loki"},
	{"fish", []string{"--no-config", "-i"}, []string{`set -g fish_autosuggestion_enabled 0; function fish_prompt; echo -n '@''> '; end`}, "(math 1+1)", "% | source", "COMPLETE=fish loki"},
	{"elvish", []string{"-norc"}, []string{`set edit:prompt = { print '@''> '; print '@''>' | tr -d "'" }`}, "(+ 1 1)", "eval (% | slurp)", "{ tmp E:COMPLETE = elvish; loki }"},
}

// terminal is what a shell shows.
type terminal struct {
	t      *testing.T
	tty    *os.File
	output chan []byte
	seen   bytes.Buffer
}

// start runs the shell in an empty directory with the model echo configured.
func (s realShell) start(t *testing.T, vars ...string) *terminal {
	t.Helper()
	path, err := exec.LookPath(s.name)
	if err != nil {
		t.Skipf("%s is not installed", s.name)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "home", "config", "config.yaml"), "model: builtin:echo\nclients: [{type: openai-compatible, name: mine, models: [{name: 'a:b'}]}]\n")
	write(t, filepath.Join(dir, "home", "rules.yaml"), fmt.Sprintf(
		"rules:\n- match: {text: %s}\n  reply: %q\ndefault:\n  error: {kind: refused, message: broken}\n", wish, "echo hello-"+s.two))
	write(t, filepath.Join(dir, "some notes.txt"), "what is in the notes\n")
	cmd := exec.Command(path, s.args...)
	cmd.Dir = dir
	cmd.Env = append(emptyHome(dir), "TERM=xterm", "NO_COLOR=1", "XDG_RUNTIME_DIR="+dir)
	cmd.Env = append(cmd.Env, vars...)
	term := newTerminal(t, cmd)
	for _, line := range s.begin {
		term.send(line + "\r")
	}
	term.wait(prompt)
	return term
}

// newTerminal runs a program at a terminal.
func newTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, tty: tty, output: make(chan []byte)}
	done := make(chan struct{})
	go func() { // ends when the terminal is closed
		defer close(term.output)
		for {
			chunk := make([]byte, 4096)
			n, err := tty.Read(chunk)
			if err != nil {
				return
			}
			select {
			case term.output <- chunk[:n]:
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		_ = cmd.Process.Kill()
		_ = tty.Close()
		_ = cmd.Wait() // it was killed
	})
	return term
}

// end waits until the program has closed the terminal.
func (term *terminal) end() {
	term.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case chunk, open := <-term.output:
			if !open {
				return
			}
			term.seen.Write(chunk)
		case <-deadline:
			term.t.Fatalf("the program does not end; it shows %q", term.seen.String())
		}
	}
}

func (term *terminal) send(text string) {
	term.t.Helper()
	if _, err := term.tty.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// wait waits until each text was shown, in this order, since the last wait.
func (term *terminal) wait(texts ...string) {
	term.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		rest, found := term.seen.Bytes(), true
		for _, text := range texts {
			i := bytes.Index(rest, []byte(text))
			if found = i >= 0; !found {
				break
			}
			rest = rest[i+len(text):]
		}
		if found {
			term.seen.Reset()
			return
		}
		select {
		case chunk, open := <-term.output:
			if !open {
				term.t.Fatalf("the shell is gone; no %q in %q", texts, term.seen.String())
			}
			term.seen.Write(chunk)
		case <-deadline:
			term.t.Fatalf("no %q in %q", texts, term.seen.String())
		}
	}
}

// TestCompletionInShells presses Tab in real shells. A command line that was not completed
// would end with an error.
func TestCompletionInShells(t *testing.T) {
	for _, s := range realShells {
		t.Run(s.name, func(t *testing.T) {
			for _, script := range []struct {
				name, command string
				lines         []string
			}{
				{"dynamic", s.register, []string{
					"loki -m builtin:ec\tone-TWO",
					"loki --model=builtin:ec\ttwo-TWO",
					"loki -r explain-sh\tthree-TWO",
					"loki --no-st\tfour-TWO",
					"loki --effort lo\tfive-TWO",
					"loki -f some\tsix-TWO",
				}},
				{"static", "loki --completions " + s.name, []string{
					"loki --no-st\tone-TWO",
					"loki --effort lo\ttwo-TWO",
					"loki -f some\tthree-TWO",
				}},
			} {
				t.Run(script.name, func(t *testing.T) {
					term := s.start(t)
					term.send(strings.ReplaceAll(s.source, "%", script.command) + "\r")
					term.wait(prompt)
					for _, line := range script.lines {
						if s.name == "elvish" && (strings.Contains(line, "-f ") || strings.Contains(line, "=")) {
							continue // what it has to quote, it shows in a list first
						}
						_, marker, _ := strings.Cut(line, "\t")
						term.send(strings.ReplaceAll(line, "TWO", s.two) + "\r")
						term.wait(strings.ReplaceAll(marker, "TWO", "2"), prompt)
					}
				})
			}
		})
	}
}

// TestPathsInBash completes what the shell and not the program expands or quotes.
func TestPathsInBash(t *testing.T) {
	s := realShells[0]
	term := s.start(t)
	term.send("mkdir 'sp ace' && echo inside > 'sp ace/file.txt' && mkdir $HOME/deep && echo athome > $HOME/deep/home.txt\r")
	term.wait(prompt)
	term.send(strings.ReplaceAll(s.source, "%", s.register) + "\r")
	term.wait(prompt)
	for _, line := range []string{
		"loki -f \"sp\tfi\t one-TWO",
		"loki -f 'sp\tfi\t two-TWO",
		"loki -f sp\tfi\tthree-TWO",
		"loki -f $HOME/de\tho\tfour-TWO",
		"loki -f ~/de\tho\tfive-TWO",
		"loki -f ./sp\tfi\tsix-TWO",
	} {
		words := strings.Split(line, "\t")
		term.send(strings.ReplaceAll(line, "TWO", s.two) + "\r")
		want := "inside"
		if strings.Contains(line, "ho") {
			want = "athome"
		}
		marker := strings.TrimSpace(strings.ReplaceAll(words[2], "TWO", "2"))
		term.wait(marker, want, prompt) // the text comes first, what is attached below it
	}
}

// wish is what the user of TestKeyInShells has typed.
const wish = `-n say "hello" isn't it`

// TestKeyInShells presses Alt-e in real shells. The model writes a command, which takes the
// place of the command line and is then run.
func TestKeyInShells(t *testing.T) {
	for _, s := range realShells {
		t.Run(s.name, func(t *testing.T) {
			term := s.start(t, "LOKI_MODEL=builtin:script", "LOKI_SCRIPT_FILE=home/rules.yaml")
			term.send(strings.ReplaceAll(s.source, "%", "loki --shell-integration "+s.name) + "\r")
			term.wait(prompt)
			term.send(wish)
			term.send("\x1be")
			term.wait("hello-") // as the rules say
			term.send("\r")
			term.wait("hello-2", prompt)
			// A failure leaves the line as it is.
			term.send("echo still-" + s.two)
			term.send("\x1be")
			term.wait("Error")
			term.send("\r")
			term.wait("still-2", prompt)
		})
	}
}
