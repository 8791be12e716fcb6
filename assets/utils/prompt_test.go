//go:build unix

// Package utils_test runs the prompt helpers of bash tools in a pseudo terminal.
package utils_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"mvdan.cc/sh/v3/syntax"
)

// A terminal is a program that runs with a terminal of its own, but whose standard output
// and error are pipes, as those of tools are.
type terminal struct {
	tb     testing.TB
	tty    *os.File
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer

	mu     sync.Mutex
	screen strings.Builder
	more   chan struct{} // has a value when screen has grown
	read   chan struct{} // closed when the terminal is gone
}

func needTerminal(tb testing.TB) {
	tb.Helper()
	for _, name := range []string{"bash", "stty", "awk"} {
		if _, err := exec.LookPath(name); err != nil {
			tb.Skip("there is no " + name)
		}
	}
}

const source = "set -euo pipefail\nIFS=$'\\n\\t'\nsource ./prompt-utils.sh\n"

func command(script string, env ...string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", source+script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "OSTYPE="}, env...)
	return cmd
}

// start runs a script. Where onTerminal is set its standard output is the terminal too.
func start(tb testing.TB, onTerminal bool, script string, env ...string) *terminal {
	tb.Helper()
	needTerminal(tb)
	t := &terminal{tb: tb, more: make(chan struct{}, 1), read: make(chan struct{})}
	t.cmd = command(script, env...)
	master, slave, err := pty.Open()
	if err != nil {
		tb.Skip("no pseudo terminal: ", err)
	}
	defer slave.Close()
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 10, Cols: 40}); err != nil {
		tb.Fatal(err)
	}
	t.tty = master
	t.cmd.Stdin = slave // only so that it becomes the controlling terminal
	t.cmd.Stdout, t.cmd.Stderr = &t.stdout, &t.stderr
	if onTerminal {
		t.cmd.Stdout = slave
	}
	controlling(t.cmd)
	if err := t.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go t.watch() // ends when the terminal is closed
	tb.Cleanup(func() {
		t.cmd.Process.Kill()
		master.Close()
		<-t.read
	})
	return t
}

func (t *terminal) watch() {
	defer close(t.read)
	buf := make([]byte, 4096)
	for {
		n, err := t.tty.Read(buf)
		t.mu.Lock()
		t.screen.Write(buf[:n])
		t.mu.Unlock()
		select {
		case t.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// expect waits until the terminal shows text, and forgets what it has shown until then.
func (t *terminal) expect(text string) {
	t.tb.Helper()
	timeout := time.After(20 * time.Second)
	for {
		t.mu.Lock()
		shown := t.screen.String()
		if i := strings.Index(shown, text); i >= 0 {
			t.screen.Reset()
			t.screen.WriteString(shown[i+len(text):])
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		select {
		case <-t.more:
		case <-t.read:
			t.tb.Fatalf("the terminal is gone before it shows %q; it shows %q; stderr %q", text, shown, t.stderr.String())
		case <-timeout:
			t.tb.Fatalf("the terminal does not show %q, but %q", text, shown)
		}
	}
}

func (t *terminal) send(keys string) {
	t.tb.Helper()
	if _, err := t.tty.WriteString(keys); err != nil {
		t.tb.Fatal(err)
	}
}

// end waits for the program and checks what it has printed.
func (t *terminal) end(stdout, stderr string) {
	t.tb.Helper()
	// A program that asks what it should not would wait for ever.
	kill := time.AfterFunc(20*time.Second, func() { t.cmd.Process.Kill() })
	err := t.cmd.Wait()
	kill.Stop()
	if got := t.stdout.String(); got != stdout {
		t.tb.Errorf("stdout %q, want %q (%v, stderr %q)", got, stdout, err, t.stderr.String())
	}
	if got := t.stderr.String(); got != stderr {
		t.tb.Errorf("stderr %q, want %q", got, stderr)
	}
}

const (
	up    = "\x1b[A"
	down  = "\x1b[B"
	right = "\x1bOC"
	left  = "\x1b[D"
)

func TestPrompts(t *testing.T) {
	const numbers = `options=(zero one two three four five six seven eight nine ten eleven); `
	for _, tt := range []struct {
		name, script string
		talk         []string // what is shown, then what is typed, in turn
		want         string
	}{
		{"input", `x=$(input "Name?"); printf '<%s>' "$x"`, []string{"Name?", " a b\\c \n"}, `< a b\c >`},
		{"input_redirected", `x=$(input "Name?" 2>/dev/tty); printf '<%s>' "$x"`, []string{"Name?", "x\n"}, `<x>`},
		{"confirm_yes", `confirm "Sure?"`, []string{"Sure? (y/N)", "y", "yes", ""}, "1"},
		{"confirm_no", `confirm "Sure?"`, []string{"Sure? (y/N)", "\n", "no", ""}, "0"},
		{"list", `list "Which?" a "b c" d`, []string{"Which?", "", "❯ a", down, "❯ b c", "j", "❯ d", "\n"}, "2"},
		{"list_wraps", `list "Which?" a b c`, []string{"❯ a", up, "❯ c", "k", "❯ b", up, "❯ a", up, "❯ c", "\n"}, "2"},
		{"list_scrolls", numbers + `list "Which?" "${options[@]}"`, []string{"❯ zero", up, "❯ eleven", "j", "❯ zero", up, "❯ eleven", "\n"}, "11"},
		{"list_cuts", `list "Which?" "$(printf '%050d' 0)" $'a\nb'`, []string{"❯ " + strings.Repeat("0", 35) + "\r\n", "", "  a b\r\n", "\n"}, "0"},
		{
			"checkbox_many_digits", numbers + `checkbox "Which?" "${options[@]}"`,
			[]string{"❯ ◯ zero", down, "❯ ◯ one", " ", "❯ ◉ one", up, "❯ ◯ zero", up, "❯ ◯ eleven", " ", "❯ ◉ eleven", "j", "zero", "j", "❯ ◉ one", " ", "❯ ◯ one", " ", "❯ ◉ one", "\n"},
			"11 1",
		},
		{"checkbox_none", `checkbox "Which?" a; echo "<$?>"`, []string{"❯ ◯ a", " ", "◉ a", " ", "◯ a", "\n"}, "<0>\n"},
		{"password", `x=$(password "Secret?"); printf '<%s>' "$x"`, []string{"Secret?", "abc", "***", "\x7f", "\b \b", " é\\d", "****", "\r"}, `<ab é\d>`},
		{"range", `range "How many?" 1 2 3`, []string{"❮ 2 ❯", right, "❮ 3 ❯", right, "❮ 1 ❯", "h", "❮ 3 ❯", left, "❮ 2 ❯", "\n"}, "2"},
		{"with_validate", `check() { if [[ $1 != ok ]]; then echo "not ok: $1"; exit 1; fi; }; with_validate 'input "Say"' check`, []string{"Say", "no\n", "not ok: no", "", "Say", "ok\n"}, "ok"},
		{"validate_present", `with_validate 'input "Say"' validate_present`, []string{"Say", "\n", "Please enter", "", "Say", "x\n"}, "x"},
		{"editor", `EDITOR="sh -c 'echo one >\"\$0\"; echo two >>\"\$0\"; echo edited'"; export EDITOR; x=$(editor "Write"); printf '<%s>' "$x"`, []string{"Write", "", "edited", "", "  one", "", "  two", ""}, "<one\ntwo>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term := start(t, false, tt.script)
			for i := 0; i < len(tt.talk); i += 2 {
				term.expect(tt.talk[i])
				term.send(tt.talk[i+1])
			}
			term.end(tt.want, "")
		})
	}
}

// TestInterrupt tells that Ctrl-C ends a prompt and leaves the terminal as it was.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	term := start(t, false, `trap : INT; before=$(stty -g </dev/tty); password "Secret?" || echo "status $?"; [[ "$before" == "$(stty -g </dev/tty)" ]] && echo same`)
	term.expect("Secret?")
	term.send("ab")
	term.expect("**")
	term.send("\x03")
	// Bash runs a trap after the read that was about to begin when the signal came, so that a user
	// has to press the keys once more.
	again := time.AfterFunc(3*time.Second, func() { _, _ = term.tty.WriteString("\x03") })
	defer again.Stop()
	term.end("status 130\nsame\n", "")
}

func TestGuards(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		env          []string
		talk         []string
		shows        string // at the end
	}{
		{name: "operation_yes", script: `guard_operation "Drop it?"; echo done`, talk: []string{"Drop it? (y/N)", "y"}, shows: "done"},
		{name: "operation_default_text", script: `guard_operation; echo done`, talk: []string{"(y/N)", "Y"}, shows: "done"},
		{name: "operation_no", script: `trap 'echo status $?' EXIT; guard_operation "Drop it?"; echo done`, talk: []string{"Drop it? (y/N)", "n"}, shows: "status 1"},
		{name: "auto_confirm", script: `guard_operation "Drop it?"; echo done`, env: []string{"AUTO_CONFIRM=1"}, shows: "done"},
		{name: "agent_auto_confirm", script: `guard_operation "Drop it?"; echo done`, env: []string{"LLM_AGENT_VAR_AUTO_CONFIRM=1"}, shows: "done"},
		{name: "path_inside", script: `guard_path ./a/../b "Write?"; guard_path "$PWD" "Write?"; echo done`, shows: "done"},
		{name: "path_outside", script: `guard_path a/../../b "Write?"; echo done`, talk: []string{"Write? (y/N)", "y"}, shows: "done"},
		{name: "path_beside", script: `guard_path "${PWD}x" "Write?"; echo done`, talk: []string{"Write? (y/N)", "y"}, shows: "done"},
		{name: "path_arguments", script: `trap 'echo status $?' EXIT; guard_path x`, shows: "status 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term := start(t, true, tt.script, tt.env...)
			for i := 0; i < len(tt.talk); i += 2 {
				term.expect(tt.talk[i])
				term.send(tt.talk[i+1])
			}
			term.expect(tt.shows)
		})
	}
}

// TestGuardsLetPipesPass: where standard output is no terminal nobody is asked.
func TestGuardsLetPipesPass(t *testing.T) {
	term := start(t, false, `guard_operation "Drop it?"; guard_path /etc/passwd "Write?"; echo done`)
	term.end("done\n", "")
}

// run runs a script without a terminal.
func run(tb testing.TB, script string, env ...string) string {
	tb.Helper()
	needTerminal(tb)
	cmd := command(script, env...)
	detached(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

func TestWithoutTerminal(t *testing.T) {
	for script, want := range map[string]string{
		`input x || echo failed`:                                     "input: there is no terminal to ask on\nfailed\n",
		`confirm x || echo failed`:                                   "confirm: there is no terminal to ask on\nfailed\n",
		`list x a || echo failed`:                                    "list: there is no terminal to ask on\nfailed\n",
		`checkbox x a || echo failed`:                                "checkbox: there is no terminal to ask on\nfailed\n",
		`password x || echo failed`:                                  "password: there is no terminal to ask on\nfailed\n",
		`editor x || echo failed`:                                    "editor: there is no terminal to ask on\nfailed\n",
		`range x 1 2 3 || echo failed`:                               "range: there is no terminal to ask on\nfailed\n",
		`range x 3 2 1 || echo failed`:                               "range: 2 is not between 3 and 1\nfailed\n",
		`range x 1 'a[$(touch pwned)]' 3 || echo failed`:             "range: a[$(touch pwned)] is not a whole number\nfailed\n",
		`with_validate 'printf ""' validate_present || echo failed`:  "✘ Please enter a value\nfailed\n",
		`with_validate 'printf x' validate_present`:                  "x",
		`validate_present "" || echo failed`:                         "Please enter a value\nfailed\n",
		`validate_present x`:                                         "",
		`error a b; warn c; info d; debug e; trace f; success g`:     "[ERROR] a b\n[WARN] c\n[INFO] d\n[DEBUG] e\n[TRACE] f\n[SUCCESS] g\n",
		`{ show_error a; show_success b; } 2>&1 >/dev/null`:          "✘ a\n✔ b\n",
		`red r; green g; gold y; blue b; magenta m; cyan c; white w`: "r\ng\ny\nb\nm\nc\nw\n",
		`for OSTYPE in linux-gnu darwin22 freebsd13 openbsd solaris2 msys cygwin beos; do echo "$(detect_os) $(get_opener)"; done`: "linux xdg-open\nmacos open\nbsd xdg-open\nbsd xdg-open\nsolaris xdg-open\nwindows start\nwindows start\nunknown \n",
		`OSTYPE=linux; xdg-open() { return 3; }; open_link u:x || echo failed`:                                                     "u:x\nfailed\n",
		`OSTYPE=linux; xdg-open() { [[ $1 == u:x ]]; }; open_link u:x`:                                                             "",
		`unset OSTYPE; open_link u:x || echo failed`:                                                                               "u:x\nfailed\n",
		`echo "$red$gray$bold$underlined$default|"`:                                                                                "|\n",
	} {
		if got := run(t, script); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
	if got := run(t, `red x`, "TERM=xterm-256color"); !strings.HasPrefix(got, "\x1b[31mx\x1b") {
		if _, err := exec.LookPath("tput"); err == nil {
			t.Errorf("red is %q", got)
		}
	}
}

func TestPatchFile(t *testing.T) {
	for _, tt := range []struct{ name, file, patch, want string }{
		{"hunk", "a\nb\nc\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n+b2\n c\n", "a\nB\nb2\nc\n"},
		{"hunks_in_order", "x\na\nx\nb\nx\n", "@@ @@\n a\n-x\n+y\n@@ @@\n-x\n+z\n", "x\na\ny\nb\nz\n"},
		{"empty_context", "a\n\nb\n", "@@ @@\n a\n\n-b\n+c\n\n\n", "a\n\nc\n"},
		{"prose", "a\n", "some words\n+not this\n@@ @@\n-a\n+b\n\\ No newline\n+nor this\n", "b\n"},
		{"insert", "", "@@ @@\n+a\n", "a\n"},
		{"numbers_as_text", "01\n1\n", "@@ @@\n-1\n+2\n", "01\n2\n"},
		{"slashes", "a\\nb & c\n", "@@ @@\n-a\\nb & c\n+d\\te & f\n", "d\\te & f\n"},
		{"no_hunk", "a\n", "-a\n+b\n", "patch_file: there is no hunk in the patch\nexit status 1"},
		{"no_place", "a\n", "@@ @@\n-b\n+c\n", "patch_file: hunk 1 does not match the file\nexit status 1"},
		{"wrong_order", "a\nb\n", "@@ @@\n-b\n+B\n@@ @@\n-a\n+A\n", "patch_file: hunk 2 does not match the file\nexit status 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file, patch := filepath.Join(dir, "a=b"), filepath.Join(dir, "p")
			for name, text := range map[string]string{file: tt.file, patch: tt.patch} {
				if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if got := run(t, `patch_file "$FILE" "$PATCH"`, "FILE="+file, "PATCH="+patch); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := run(t, `cd "${TMPDIR:-/tmp}"; patch_file ./no-such-file <(printf '@@ @@\n+a\n')`); !strings.HasPrefix(got, "patch_file: cannot read ") {
		t.Errorf("got %q", got)
	}
}

// TestSyntaxLevel: bash 3.2 has to read the file. What it does not know shows in the text.
func TestSyntaxLevel(t *testing.T) {
	text, err := os.ReadFile("prompt-utils.sh")
	if err != nil {
		t.Fatal(err)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(text), "prompt-utils.sh")
	if err != nil {
		t.Fatal(err)
	}
	var found int
	syntax.Walk(file, func(node syntax.Node) bool {
		if _, ok := node.(*syntax.FuncDecl); ok {
			found++
		}
		if x, ok := node.(*syntax.ParamExp); ok && x.Exp != nil && (x.Exp.Op >= syntax.UpperFirst && x.Exp.Op <= syntax.OtherParamOps) {
			t.Errorf("%s: ${x%s}", x.Pos(), x.Exp.Op)
		}
		return true
	})
	if found < 30 {
		t.Errorf("%d functions", found)
	}
	for _, word := range []string{"declare -A", "local -n", "local -A", "declare -g", "mapfile", "readarray", "|&", "&>>", ";&", ";;&", "[[ -v", ": -1", ":-1}", "coproc", "EPOCH", "read -rsn1 -t 0"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%s is newer than bash 3.2", word)
		}
	}
}
