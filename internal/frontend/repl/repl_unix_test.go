//go:build linux || darwin

package repl_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"loki/internal/base/ptytest"
	"loki/internal/base/text/sample"
	"loki/internal/conversation"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/repl"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"loki": func() {
			if !repl.Guard(os.Args[1:]) {
				os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{REPL: run}))
			}
		},
	})
}

// suite is the tests of this package.
type suite struct{ *testing.M }

func (s suite) Run() int {
	ptytest.ObeySignals()
	return s.M.Run()
}

// run is [repl.Run]. With the variable PANICS, showing an error panics, and SIGUSR1 has another goroutine panic.
func run(ctx context.Context, o display.Options, begin func(context.Context, conversation.Caller) (*conversation.Conversation, error)) error {
	if os.Getenv("PANICS") != "" {
		o.Err = panics{}
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGUSR1)
		go func() { // ends the process
			<-caught
			panic("somewhere else")
		}()
	}
	return repl.Run(ctx, o, begin)
}

// panics is a writer that cannot write errors.
type panics struct{}

func (panics) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("Error: ")) {
		panic("cannot write that")
	}
	return len(p), nil
}

// prompt begins all prompts of the talks.
const prompt = "builtin:script)"

// patience bounds the wait for something on the terminal: for a program that hangs.
const patience = time.Minute

// talk is a REPL at a terminal without an emulator: what it writes is kept as it is.
type talk struct {
	t     *testing.T
	dir   string
	cmd   *exec.Cmd
	pty   *os.File // the side of the user
	tty   *os.File // the side of the program
	modes unix.Termios
	ended chan struct{} // closed when the program has
	read  chan struct{} // closed when all that it wrote was read

	mu      sync.Mutex
	shown   []byte
	seen    int           // how much of it was waited for
	changed chan struct{} // holds one element when more is shown
}

// begin starts the program in an empty home, with files below the directory of the configuration, and
// waits for the first prompt.
func begin(t *testing.T, files map[string]string, args ...string) *talk {
	t.Helper()
	x := start(t, files, nil, args...)
	x.sees(prompt)
	return x
}

// start is begin without waiting, and with more variables in the environment.
func start(t *testing.T, files map[string]string, environ []string, args ...string) *talk {
	t.Helper()
	return startProgram(t, files, environ, "loki", args...)
}

// startProgram is start with another program.
func startProgram(t *testing.T, files map[string]string, environ []string, name string, args ...string) *talk {
	t.Helper()
	dir := t.TempDir()
	if files["config.yaml"] == "" {
		files["config.yaml"] = "model: builtin:script\ntheme: dark\nclients: [{type: builtin, script: rules.yaml}]\n"
	}
	for file, text := range files {
		file = filepath.Join(dir, "config", file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*patience)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "LOKI_CONFIG_DIR="+filepath.Join(dir, "config"), "LOKI_STATE_DIR="+filepath.Join(dir, "state"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "SHELL=/bin/sh", "TERM=xterm-256color", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, environ...)
	user, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(user, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	modes, err := unix.IoctlGetTermios(int(program.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	x := &talk{
		t: t, dir: dir, cmd: cmd, pty: user, tty: program, modes: *modes,
		ended: make(chan struct{}), read: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	go func() { // ends when the program's side is closed
		defer close(x.read)
		x.listen()
	}()
	go func() { // ends with the program
		defer close(x.ended)
		_ = cmd.Wait() // its state is looked at
	}()
	t.Cleanup(func() {
		cancel()
		<-x.ended
		program.Close()
		<-x.read
		user.Close()
	})
	return x
}

func (x *talk) listen() {
	buf := make([]byte, 4096)
	for {
		n, err := x.pty.Read(buf)
		x.mu.Lock()
		x.shown = append(x.shown, buf[:n]...)
		x.mu.Unlock()
		select {
		case x.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// types types text: keys as terminals send them.
func (x *talk) types(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.pty, text); err != nil {
		x.t.Fatal(err)
	}
}

// sees waits until the terminal was sent each of the texts, in this order, behind what was waited for before.
func (x *talk) sees(texts ...string) {
	x.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, text := range texts {
		for {
			x.mu.Lock()
			i := bytes.Index(x.shown[x.seen:], []byte(text))
			if i >= 0 {
				x.seen += i + len(text)
			}
			x.mu.Unlock()
			if i >= 0 {
				break
			}
			select {
			case <-x.changed:
			case <-timer.C:
				x.t.Fatalf("no %q on the terminal, which shows %q", text, x.text())
			}
		}
	}
}

func (x *talk) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.shown)
}

// signal sends a signal to the program.
func (x *talk) signal(s os.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

// leaves waits until the program has ended with the status, and checks that the terminal is as it was found.
func (x *talk) leaves(status int) {
	x.t.Helper()
	select {
	case <-x.ended:
	case <-time.After(patience):
		x.t.Fatalf("it does not end; the terminal shows %q", x.text())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Errorf("exit status %d, want %d; the terminal shows %q", got, status, x.text())
	}
	x.restored()
}

// restored checks that the terminal is as it was found.
func (x *talk) restored() {
	x.t.Helper()
	modes, err := unix.IoctlGetTermios(int(x.tty.Fd()), getTermios)
	if err != nil {
		x.t.Fatal(err)
	}
	if *modes != x.modes {
		x.t.Errorf("the modes of the terminal are %+v, and were %+v", *modes, x.modes)
	}
	x.tty.Close()
	<-x.read
	text := x.text()
	if on, off := strings.LastIndex(text, "\x1b[?2004h"), strings.LastIndex(text, "\x1b[?2004l"); on > off {
		x.t.Errorf("bracketed paste is still on: %q", text)
	}
}

// session returns the messages of the only session, as they are kept.
func (x *talk) session() string {
	x.t.Helper()
	files, err := filepath.Glob(filepath.Join(x.dir, "config", "sessions", "by-id", "*", "messages.jsonl"))
	if err != nil || len(files) != 1 {
		x.t.Fatalf("sessions: %q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		x.t.Fatal(err)
	}
	return string(data)
}

// slow answers so slowly that there is time to do something meanwhile.
const slow = `
rules:
  - match: {text: story}
    reply: "Once upon a time there was a king"
    chunk_delay: 10m
  - match: {text: ask me, turn: 1}
    tool_calls: [{name: user__input, arguments: {question: "Which color?"}}]
  - match: {text: ask me, turn: 2}
    reply: "You like {{tool_result}}"
default: {reply: "You said: {{text}}"}
`

func TestTalk(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("hello\r")
	x.sees("You said: hello", prompt)
	x.types("\x03")
	x.sees("Ctrl-D", prompt)
	x.types(".nonsense\r")
	x.sees("Error: ", "hint: ", prompt)
	x.types(".help\r")
	x.sees(".help tips", prompt)
	x.types(".exit\r")
	x.leaves(0)
	if !strings.HasPrefix(x.text(), "Welcome to loki ") {
		t.Errorf("it begins with %.100q", x.text())
	}
}

// TestAnswersFollowSettings: what .set changes, also in a macro, holds for how the next answer is shown, with whatever the program began.
func TestAnswersFollowSettings(t *testing.T) {
	const colored, plain, raw = "triage \x1b[1mnow", "triage **now**", "- triage **now**"
	for _, args := range [][]string{nil, {"--dry-run"}} {
		t.Run(strings.Join(append([]string{"with"}, args...), "_"), func(t *testing.T) {
			files := map[string]string{
				"rules.yaml": "default: {reply: '- triage **now**'}\n", "roles/lists.md": "- triage **now**",
				"macros/plain.yaml": "steps: ['.set highlight false', '.set dry_run false', 'begin']\n",
			}
			x := start(t, files, []string{"NO_COLOR=", "COLORTERM="}, args...)
			x.sees(prompt)
			for _, step := range []struct{ set, line, want, not string }{
				{".set dry_run false", "begin", colored, plain},
				{".set highlight false", "begin", plain, colored},
				{".set highlight true", "begin", colored, plain},
				{".set dry_run true", ".role lists hello", raw, colored},
				{".set dry_run true", ".macro plain", plain, colored},
				{".set dry_run true", ".role lists hello", raw, colored},
				{".set dry_run false", "begin", colored, plain},
			} {
				x.types(step.set + "\r")
				x.sees(prompt)
				from := len(x.text())
				x.types(step.line + "\r")
				x.sees(step.want)
				if step.want != raw {
					x.sees("tokens in")
				}
				x.sees(prompt)
				if got := x.text()[from:]; strings.Contains(got, step.not) {
					t.Errorf("behind %s, %s shows %q", step.set, step.line, got)
				}
			}
			x.types(".exit\r")
			x.leaves(0)
		})
	}
}

func TestEndOfInputLeaves(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("\x04")
	x.leaves(0)
}

// TestInterruptAnswer: Ctrl-C stops an answer, what was typed meanwhile is the next line, and that
// goes on from what came.
func TestInterruptAnswer(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow}, "-s", "tale", "--save-session")
	x.types("a story\r")
	x.sees("Once")
	x.types("and then?")
	x.types("\x03")
	x.sees("Canceled.", prompt, "and then?")
	x.types("\r")
	x.sees("You said: and then?", prompt)
	x.types(".exit\r")
	x.leaves(0)
	if kept := x.session(); !strings.Contains(kept, "Once") || !strings.Contains(kept, "and then?") {
		t.Errorf("the session is %q", kept)
	}
}

// TestLeaveDuringAnswer: Ctrl-D stops an answer and leaves.
func TestLeaveDuringAnswer(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("a story\r")
	x.sees("Once")
	x.types("\x04")
	x.leaves(0)
}

// TestQuestion: what a tool asks is asked in place, and Ctrl-C at a
// question stops the answer only.
func TestQuestion(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("ask me\r")
	x.sees("Answer: ")
	x.types("blue\r")
	x.sees("You like", "blue", prompt)
	x.types("ask me\r")
	x.sees("Answer: ")
	x.types("\x03")
	x.sees("Canceled.", prompt)
	x.types("hello\r")
	x.sees("You said: hello", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestSignalsEnd: a signal ends the REPL at the prompt and during an answer. The session is saved by its
// settings, and nothing is asked.
func TestSignalsEnd(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"terminated": syscall.SIGTERM, "hung_up": syscall.SIGHUP} {
		for _, during := range []string{"prompt", "answer", "question"} {
			t.Run(name+"_at_"+during, func(t *testing.T) {
				t.Parallel()
				x := begin(t, map[string]string{"rules.yaml": slow}, "--save-session", "-s", "kept")
				x.types("hello\r")
				x.sees("You said: hello", prompt)
				switch during {
				case "answer":
					x.types("a story\r")
					x.sees("Once")
				case "question":
					x.types("ask me\r")
					x.sees("Answer: ")
				}
				x.signal(sig)
				x.leaves(130)
				if kept := x.session(); !strings.Contains(kept, "You said: hello") {
					t.Errorf("the session is %q", kept)
				}
			})
		}
	}
}

// TestPanic: the terminal is as it was found also after a panic.
func TestPanic(t *testing.T) {
	x := start(t, map[string]string{"rules.yaml": slow}, []string{"PANICS=1"})
	x.sees(prompt)
	x.types(".nonsense\r")
	x.sees("panic: ")
	x.leaves(2)
}

// TestCrash: the terminal is as it was found also after what the REPL cannot answer.
func TestCrash(t *testing.T) {
	for name, tt := range map[string]struct {
		sig    syscall.Signal
		status int
	}{
		"panic_elsewhere": {syscall.SIGUSR1, 2},
		"quit":            {syscall.SIGQUIT, 2},
		"kill":            {syscall.SIGKILL, -1},
	} {
		for _, during := range []string{"prompt", "answer", "question"} {
			t.Run(name+"_at_"+during, func(t *testing.T) {
				t.Parallel()
				x := start(t, map[string]string{"rules.yaml": slow}, []string{"PANICS=1"})
				x.sees(prompt)
				switch during {
				case "answer":
					x.types("a story\r")
					x.sees("Once")
				case "question":
					x.types("ask me\r")
					x.sees("Answer: ")
				}
				x.signal(tt.sig)
				if during != "question" { // which is asked in the modes that were found
					x.sees("\x1b[?2004l")
				}
				x.leaves(tt.status)
			})
		}
	}
}

// TestUndecidedSession: what was said in a session is written before the user is asked about it, so that it outlives the
// program, and a question that is not answered decides nothing.
func TestUndecidedSession(t *testing.T) {
	for name, leave := range map[string]func(x *talk){
		"killed": func(x *talk) {
			x.signal(syscall.SIGKILL)
			<-x.ended
		},
		"hung_up": func(x *talk) {
			x.signal(syscall.SIGHUP)
			x.leaves(130)
		},
		"interrupted": func(x *talk) {
			x.types(".exit session\r")
			x.sees("Save session ", "Number")
			x.types("\x03")
			x.sees("Canceled.", prompt)
			x.types(".exit\r")
			x.sees("Save session ", "Number")
			x.types("\x03")
			x.leaves(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, map[string]string{"rules.yaml": slow})
			x.types(".session\r")
			x.sees(prompt)
			x.types("hello\r")
			x.sees("You said: hello", prompt)
			leave(x)
			if kept := x.session(); !strings.Contains(kept, "You said: hello") {
				t.Errorf("the session is %q", kept)
			}
		})
	}
}

// TestStopAndContinue: a stopped REPL gives the terminal back, and goes on with the line.
func TestStopAndContinue(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("hel")
	x.sees("hel")
	x.signal(syscall.SIGTSTP) // its process group is orphaned here, so it goes on by itself
	x.sees("\x1b[?2004l", "\x1b[?2004h", "hel")
	x.types("lo\r")
	x.sees("You said: hello", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestShellCommand runs commands of the shell, stops one, and sends the output of another.
func TestShellCommand(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("!echo $((40+2)); exit 3\r")
	x.sees("42", "exit status 3", "!! TEXT", prompt)
	x.types("!! why\r")
	x.sees("You said: why", "CMD: echo $((40+2)); exit 3 (exit status 3)", "42", prompt)
	x.types("!tail -f config/rules.yaml\r")
	x.sees("Once upon a time")
	x.types("\x03")
	x.sees("interrupt", prompt)
	x.types("!tail -f config/rules.yaml\r")
	x.sees("Once upon a time")
	x.types("\x1c")
	x.sees("quit", prompt)
	x.types("!\r")
	x.sees("Error: ", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestStoppedShellCommand: where no shell controls jobs, a command that is stopped goes on. The modes that a
// command has set are gone after it.
func TestStoppedShellCommand(t *testing.T) {
	t.Parallel()
	x := begin(t, map[string]string{"rules.yaml": slow})
	x.types("!kill -STOP $$; echo we''nt on\r")
	x.sees("went on\r\n", prompt)
	x.types("!echo re\"\"ady; cat\r")
	x.sees("ready\r\n")
	x.types("abc\r") // and cat runs
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x1a")
	x.types("abc\r")
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x03")
	x.sees("^C", prompt)
	x.types("!stty raw -echo\r")
	x.sees("raw -echo", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestStopWithShellCommand: Ctrl-Z stops the program with a command, and "fg" continues both. The command reads with the
// shell itself, which the program waits for: a child of that shell may be woken only after "fg" was typed, and then
// reads it before it stops.
func TestStopWithShellCommand(t *testing.T) {
	t.Parallel()
	x := startProgram(t, map[string]string{"rules.yaml": slow}, []string{"PS1=(shell)", "ENV="}, "sh", "-i")
	x.sees("(shell)")
	x.types("loki\r")
	x.sees(prompt)
	x.types("!echo be''gun; while read x; do echo $x; done; echo s''aw the end\r")
	x.sees("begun\r\n")
	x.types("abc\r") // and it reads
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x1a")
	x.sees("topped", "(shell)")
	x.types("fg\r")
	x.sees("fg\r\n")
	x.types("abc\r")
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x04")
	x.sees("saw the end", prompt)
	x.types("!echo ag''ain; while read x; do echo $x; done\r")
	x.sees("again\r\n")
	x.types("abc\r") // and it reads
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x1a")
	x.sees("topped", "(shell)")
	x.types("fg\r")
	x.sees("fg\r\n")
	x.types("abc\r")
	x.sees("abc\r\n", "abc\r\n")
	x.types("\x03")
	x.sees("^C", prompt)
	x.types("\x04")
	x.sees("(shell)")
	x.types("exit\r")
	x.leaves(0)
}

// TestTypedBeforePrompt: what is typed while the terminal is asked for its colors is in the first line.
func TestTypedBeforePrompt(t *testing.T) {
	files := map[string]string{"rules.yaml": slow, "config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\n"}
	x := start(t, files, []string{"NO_COLOR="})
	x.sees("\x1b]11;?")
	x.types("hel")
	x.types("\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;22c")
	x.sees(prompt, "hel")
	x.types("lo\r")
	x.sees("You said: hello", prompt)
	x.types("\x04")
	x.leaves(0)
	if strings.Contains(x.text(), "rgb:") {
		t.Errorf("the terminal shows its own answer: %q", x.text())
	}
}

// TestReplay shows the last turns of a session that is entered.
func TestReplay(t *testing.T) {
	messages := ""
	for _, n := range []string{"one", "two", "three"} {
		messages += "  - {role: user, content: question " + n + "}\n  - {role: assistant, content: answer " + n + "}\n"
	}
	x := begin(t, map[string]string{"rules.yaml": slow, "sessions/old.yaml": "model: builtin:script\nmessages:\n" + messages}, "-s", "old")
	for _, want := range []string{"6 messages", "question two", "answer two", "question three", "answer three"} {
		if !strings.Contains(x.text(), want) {
			t.Errorf("the terminal shows no %q: %q", want, x.text())
		}
	}
	if strings.Contains(x.text(), "question one") {
		t.Errorf("the terminal shows %q", x.text())
	}
	x.types("\x04")
	x.leaves(0)
}

// TestStartsLittle: nothing is made at the start that is not needed.
func TestStartsLittle(t *testing.T) {
	x := begin(t, map[string]string{"rules.yaml": slow})
	err := filepath.WalkDir(x.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, filepath.Join(x.dir, "config")) && !strings.HasSuffix(path, ".log") {
			t.Errorf("it made %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	x.types("\x04")
	x.leaves(0)
}

// TestNoTerminal: without a terminal at both ends, a command without a text fails.
func TestNoTerminal(t *testing.T) {
	cmd := exec.Command("loki", "-m", "builtin:echo")
	cmd.Env = append(os.Environ(), "LOKI_CONFIG_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("there is no text to send")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestQuestionTypedAhead types a question while a command asks something else: it does not answer that, and is asked afterwards.
func TestQuestionTypedAhead(t *testing.T) {
	for name, answer := range map[string]string{"enter": "\r", "letter": "n\r", "digit": "2\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, map[string]string{"rules.yaml": "default: {reply: 'You said: {{text}}'}\n"})
			x.types("hello\r")
			x.sees("You said: hello", prompt)
			x.types(".session\r")
			x.sees(prompt)
			x.types("hello\r")
			x.sees("You said: hello", prompt)
			x.types(".exit session\ryes, what is a sail?\r") // the session could be saved
			x.sees("Save session temp?", "Number [no]: ")
			x.types(answer)
			x.sees("You said: yes, what is a sail?", prompt)
			x.types(".session trip\r")
			x.sees("Take what was said here into session trip?", "Number [no]: ")
			x.types(answer)
			x.sees(prompt)
			x.types(".exit\r")
			x.leaves(0)
		})
	}
}

// TestSentenceAtQuestion types a sentence when a question about permission is on the screen. It grants nothing and is no prompt: it is
// in the next line, with a line break for Enter.
func TestSentenceAtQuestion(t *testing.T) {
	for name, tt := range map[string]struct {
		environ string
		shows   []string // before keys count, and when they do
		counts  []string
		answer  string
	}{
		"lines": {"NO_COLOR=1", []string{"1) yes"}, []string{"Number", ": "}, "n\r"},
		"drawn": {"NO_COLOR=", []string{"one moment"}, []string{"press "}, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := start(t, map[string]string{
				"config.yaml": "model: builtin:script\ntheme: dark\nenabled_tools: fs_write\nclients: [{type: builtin, script: rules.yaml}]\n",
				"rules.yaml": "rules:\n  - match: {text: write it, turn: 1}\n    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: new}}]\n" +
					"  - match: {text: write it}\n    reply: the end\ndefault: {reply: 'You said: {{text}}'}\n",
			}, []string{tt.environ})
			if err := os.WriteFile(filepath.Join(x.dir, "one.txt"), []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			x.sees(prompt)
			x.types("write it\r")
			x.sees(append([]string{"Replace the contents"}, tt.shows...)...)
			x.types("yes, and what is that?\r")
			x.sees(tt.counts...)
			x.types(tt.answer)
			x.sees("end\r\n", prompt, "yes, and what is that?")
			x.types("\x03")
			x.sees("leaves)", prompt)
			x.types("\x04")
			x.leaves(0)
			got, err := os.ReadFile(filepath.Join(x.dir, "one.txt"))
			if err != nil || string(got) != "old" || strings.Contains(x.text(), "You said") {
				t.Errorf("the file is %q, %v\n%s", got, err, x.text())
			}
		})
	}
}

// TestTypedAheadOfQuestions types random texts after a line that leads to a question. They do not answer it.
func TestTypedAheadOfQuestions(t *testing.T) {
	const writes = "rules:\n  - match: {text: write it, turn: 1}\n    tool_calls: [{name: fs_write, arguments: {path: one.txt, contents: new}}]\ndefault: {reply: 'the end'}\n"
	for name, tt := range map[string]struct{ line, asks, counts, answer, sees string }{
		"permission": {"write it", "Replace the contents", "press ", "n\r", "end\r\n"},
		"picker":     {".models builtin", "Which model?", "", "builtin:echo\r", "✓ builtin:echo"},
		"session":    {".session trip", "what was said here", "type or", "no\r", "trip"},
	} {
		for i, ahead := range ptytest.TypedAhead(200) {
			if i%sample.Step(101) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				term := []string{"xterm-256color", "dumb"}[i%2]
				x := start(t, map[string]string{
					"config.yaml": "model: builtin:script\ntheme: dark\nenabled_tools: fs_write\nclients: [{type: builtin, script: rules.yaml}]\n",
					"rules.yaml":  writes,
				}, []string{"TERM=" + term, "NO_COLOR="})
				file := filepath.Join(x.dir, "one.txt")
				if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				x.sees(prompt)
				x.types("hello\r")
				x.sees("end\r\n", prompt)
				x.types(tt.line + "\r" + ahead)
				x.sees(tt.asks)
				switch {
				case term == "dumb":
					x.sees("Number", ": ")
				case tt.counts != "":
					x.sees(tt.counts)
				}
				x.types(tt.answer)
				x.sees(tt.sees)
				if got, err := os.ReadFile(file); err != nil || string(got) != "old" {
					t.Errorf("%q was typed ahead, and the file is %q, %v\n%s", ahead, got, err, x.text())
				}
			})
		}
	}
}
