//go:build linux || darwin

package repl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// working is a chat in which "work" calls a command that ends when release is called.
func working(t *testing.T, args ...string) (x *talk, release func()) {
	t.Helper()
	x = begin(t, map[string]string{
		"config.yaml": "model: builtin:script\ntheme: dark\nenabled_tools: execute_command\npermission: {execute_command: allow}\nclients: [{type: builtin, script: rules.yaml}]\n",
		"rules.yaml": "rules:\n  - match: {text: work, turn: 1}\n    tool_calls: [{name: execute_command, arguments: {command: 'until [ -e go ]; do sleep 0.02; done', sandbox: read}}]\n" +
			"  - match: {text: work}\n    reply: 'worked'\ndefault: {reply: 'You said: {{text}}'}\n",
	}, args...)
	return x, func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(x.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// answers returns what is on the terminal without the lines that were drawn below answers while they came.
func (x *talk) answers() string {
	below := regexp.MustCompile(`(?s)(\x1bD)+.*?\x1b8(\x1b\[J)?`)
	return below.ReplaceAllString(x.text(), "")
}

// TestQueue: lines that are entered while it works are shown, can be taken back and dropped, and are run afterwards in their order.
// Some commands run at once.
func TestQueue(t *testing.T) {
	t.Parallel()
	x, release := working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("first\r")
	x.sees("1. first")
	x.types("secnd\r")
	x.sees("2. secnd")
	x.types("\x1b[A")
	x.sees("> secnd")
	x.types("\x1b[D\x1b[Do\r") // the cursor moves in it
	x.sees("2. second")
	x.types("third\r")
	x.sees("3. third")
	x.types("fourth\r")
	x.sees("4. fourth")
	x.types(".queue drop 3\r")
	x.sees(" 1  first", " 2  second", " 3  fourth")
	x.types(".usage\r")
	x.sees("last answer")
	x.types("half a li")
	x.sees("> half a li")
	release()
	x.sees("worked", prompt+"> first\r\n", prompt+"> second\r\n", prompt+"> fourth\r\n", prompt, "half a li")
	x.types("\x15.queue\r")
	x.sees("The queue is empty.", prompt)
	x.types("\x1b[A\x1b[A") // what was queued is in the history
	x.sees("fourth")
	x.types("\x03")
	x.sees("leaves)", prompt)
	x.types("\x04")
	x.leaves(0)
	var answers []string
	for _, found := range regexp.MustCompile(`You said: (\w+)`).FindAllStringSubmatch(x.answers(), -1) {
		answers = append(answers, found[1])
	}
	if got := strings.Join(answers, " "); got != "first second fourth" {
		t.Errorf("answered were %s in %q", got, x.answers())
	}
}

// TestQueueReturns: after Ctrl-C and after an error, lines that wait return one by one, and are not run without Enter.
func TestQueueReturns(t *testing.T) {
	t.Parallel()
	x, _ := working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("first\rsecond\r")
	x.sees("2. second")
	x.types("more")
	x.sees("> more")
	x.types("\x03")
	x.sees("Canceled.", "(2 lines were not run, and return one by one; .queue lists them)", prompt, "first")
	x.types("\x15.queue\r")
	x.sees(" 1  second\r\n 2  more", prompt, "second")
	x.types("\x03")
	x.sees("leaves)", prompt, "more")
	x.types("\x15!true\r")
	x.sees(prompt)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types(".nonsense\rafter\r")
	x.sees("2. after")
	x.types("\x03")
	x.sees("Canceled.", prompt, ".nonsense")
	x.types("\r")
	x.sees("Error: ", prompt, "after")
	x.types("\x03")
	x.sees("leaves)", prompt)
	x.types("\x04")
	x.leaves(0)
	if strings.Contains(x.text(), "You said") {
		t.Errorf("a line was run: %s", x.text())
	}
}

// TestQueueIsBounded: lines for which there is no room stay in the line.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	x, release := working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	for range 21 {
		x.types("again\r")
	}
	x.sees("the queue is full", "> again")
	x.types("\x15.queue clear\r")
	x.sees("The queue is empty.")
	x.types("\x1b[200~" + strings.Repeat("long ", 15000) + "\x1b[201~\r")
	x.sees("the queue is full")
	x.types("\x15")
	release()
	x.sees("worked", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestSteer: Alt-Enter sends a line to the answer that is being given, which the model reads behind the result of its tool. The session has
// it once. Up takes one back that was not read yet, and Alt-Enter of a command puts it into the queue.
func TestSteer(t *testing.T) {
	t.Parallel()
	x, release := working(t, "-s", "kept", "--save-session")
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("look left\x1b\r")
	x.sees("» look left")
	x.types("look right\x1b\r")
	x.sees("» look right")
	x.types("\x1b[A")
	x.sees("> look right")
	x.types("\x15.starter\x1b\r")
	x.sees("1. .starter")
	release()
	x.sees("» look left", prompt+"kept) .starter\r\n", "Error: ", prompt)
	x.types("\x04")
	x.leaves(0)
	if !strings.Contains(x.answers(), "You said: look left") {
		t.Errorf("the model did not read it: %s", x.answers())
	}
	kept := x.session()
	if strings.Count(kept, `"steer":true`) != 1 || strings.Count(kept, `"look left"`) != 1 || strings.Contains(kept, "look right") {
		t.Errorf("the session is %s", kept)
	}
}

// TestSteerComesBack: what the model has not read when the answer is stopped comes back into the line.
func TestSteerComesBack(t *testing.T) {
	t.Parallel()
	x, _ := working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("later\rlook left\x1b\r")
	x.sees("» look left", "1. later")
	x.types("\x03")
	x.sees("Canceled.", prompt, "look left")
	x.types("\x03")
	x.sees("leaves)", prompt, "later")
	x.types("\x03")
	x.sees("leaves)", prompt)
	x.types("\x04")
	x.leaves(0)
}

// TestWhatWaitsIsNotLost: a chat that the user leaves says what it did not run, and one that is killed has it in the history.
func TestWhatWaitsIsNotLost(t *testing.T) {
	t.Parallel()
	x, _ := working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("later\rlook left\x1b\r")
	x.sees("» look left", "1. later")
	x.types("\x04")
	x.leaves(0)
	for _, want := range []string{"not run: look left", "not run: later"} {
		if !strings.Contains(x.text(), want) {
			t.Errorf("%q is not in %s", want, x.text())
		}
	}

	x, _ = working(t)
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("look left\x1b\r")
	x.sees("» look left")
	x.signal(syscall.SIGKILL)
	<-x.ended
	found := false
	_ = filepath.WalkDir(filepath.Dir(x.dir), func(path string, _ os.DirEntry, _ error) error {
		if filepath.Base(path) == "repl_history" {
			data, _ := os.ReadFile(path)
			found = found || strings.Contains(string(data), `"look left"`)
		}
		return nil
	})
	if !found {
		t.Error("the history does not have the message")
	}
}

// TestSteerKilled kills the program when the model has been sent a line. The session has it, once.
func TestSteerKilled(t *testing.T) {
	t.Parallel()
	x := begin(t, map[string]string{
		"config.yaml": "model: builtin:script\ntheme: dark\nenabled_tools: execute_command\npermission: {execute_command: allow}\nclients: [{type: builtin, script: rules.yaml}]\n",
		"rules.yaml": "rules:\n  - match: {text: work, turn: 1}\n    tool_calls: [{name: execute_command, arguments: {command: 'until [ -e go ]; do sleep 0.02; done', sandbox: read}}]\n" +
			"default: {reply: 'You said: {{text}}', chunk_delay: 10m}\n",
	}, "-s", "kept", "--save-session")
	x.types("work\r")
	x.sees("Call execute_command")
	x.types("look left\x1b\r")
	x.sees("» look left")
	if err := os.WriteFile(filepath.Join(x.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.sees("You")
	x.signal(syscall.SIGKILL)
	<-x.ended
	cmd := exec.CommandContext(t.Context(), "loki", "--session", "kept", "--dry-run", "next")
	cmd.Dir, cmd.Env = x.dir, x.cmd.Env
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "look left") != 1 {
		t.Errorf("%v, the next request is %s", err, out)
	}
}

// TestNotices: a question that waits is announced after a while, at once if the terminal has lost the focus, and not at all if the user does
// not want to know. The user's command gets the text.
func TestNotices(t *testing.T) {
	t.Parallel()
	const notice = "\x1b]9;loki: a question waits for your answer\a"
	for name, tt := range map[string]struct {
		config string
		before string // typed before
		want   bool
	}{
		"after_a_while": {"notify_after: 0\n", "", true},
		"not_yet":       {"notify_after: 3600\n", "", false},
		"elsewhere":     {"notify_after: 3600\n", "\x1b[O", true},
		"back_again":    {"notify_after: 3600\n", "\x1b[O\x1b[I", false},
		"off":           {"notify_after: 0\nnotify: off\n", "", false},
		"all":           {"notify_after: 0\nnotify: true\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, map[string]string{
				"rules.yaml":  slow,
				"config.yaml": "model: builtin:script\ntheme: dark\nclients: [{type: builtin, script: rules.yaml}]\nnotify_command: printf '%s\\n' \"$LOKI_NOTICE\" >> notices\n" + tt.config,
			})
			x.types(tt.before + "ask me\r")
			x.sees("Answer: ")
			x.types("blue\r")
			x.sees("blue", prompt)
			x.types("\x04")
			x.leaves(0)
			if got := strings.Contains(x.text(), notice); got != tt.want {
				t.Errorf("announced: %v, %q", got, x.text())
			}
			data, _ := os.ReadFile(filepath.Join(x.dir, "notices"))
			want := ""
			if tt.want {
				want = "a question waits for your answer\n"
			}
			if got := string(data); !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "the answer is there") != (name == "all") {
				t.Errorf("the command got %q, want %q", got, want)
			}
			if on := strings.Contains(x.text(), "\x1b[?1004h"); on != (name != "off") || strings.LastIndex(x.text(), "\x1b[?1004h") > strings.LastIndex(x.text(), "\x1b[?1004l") {
				t.Error("focus is reported to the next program")
			}
		})
	}
}
