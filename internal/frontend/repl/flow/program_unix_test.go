//go:build unix

package flow_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// user is a user at a terminal, in a home of their own, with the program in the path.
type user struct {
	*terminal
	home string // also the directory in which the program runs
}

// setup is what a user has. The zero value of a field is its default.
type setup struct {
	columns, rows int               // 80 and 40
	config        string            // lines of config.yaml
	rules         string            // of the model builtin:script
	files         map[string]string // below the home
	args          []string          // of the program
	environ       []string
	before        string // commands of the shell, ended by a semicolon, that run before the program
}

// answers are the rules of the model without others.
const answers = `default: {reply: "You said: {{text}}"}`

// begin runs the program with what o says, and returns when it shows its first prompt.
func begin(t *testing.T, o setup) *user {
	t.Helper()
	u := start(t, o)
	u.idle(1)
	return u
}

// start is begin without waiting.
func start(t *testing.T, o setup) *user {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	home := newHome(t)
	if o.columns == 0 {
		o.columns = 80
	}
	if o.rows == 0 {
		o.rows = 40
	}
	if o.rules == "" {
		o.rules = answers
	}
	config := "model: builtin:script\ntheme: dark\nclients:\n  - type: builtin\n    script: rules.yaml\n" + o.config
	files := map[string]string{"config/config.yaml": config, "config/rules.yaml": o.rules}
	for name, text := range o.files {
		files[name] = text
	}
	for name, text := range files {
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := append([]string{
		"HOME=" + home, "PATH=" + programs + ":" + os.Getenv("PATH"), "SHELL=/bin/sh", "EDITOR=edit-file", "GORACE=atexit_sleep_ms=0",
		"LOKI_CONFIG_DIR=" + filepath.Join(home, "config"), "LOKI_STATE_DIR=" + filepath.Join(home, "state"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "COLORTERM=truecolor",
	}, o.environ...)
	argv := append([]string{"sh", "-c", o.before + `loki "$@"; printf '\n[exit %s]\n' $?; exec sleep 1000`, "sh"}, o.args...)
	return &user{newTerminal(t, o.columns, o.rows, home, environ, argv...), home}
}

// newHome returns an empty directory whose path has the same length on all systems, as screens depend on it. Its name is
// random: a server of a test that has just ended may still leave a line in its own home.
func newHome(t *testing.T) string {
	t.Helper()
	for range 1_000 {
		home := filepath.Join("/tmp", fmt.Sprintf("flow%06d", rand.IntN(1_000_000)))
		err := os.Mkdir(home, 0o700)
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(home) })
			return home
		}
		if !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	t.Fatal("all names are taken")
	return ""
}

// prompt matches the prompt of the program without anything typed behind it, with the right prompt of a session.
var prompt = regexp.MustCompile(`^builtin:\S+\)\S*[>)]( +\d+(\(\d+(\.\d+)?%\))?)?$`)

// prompts counts the prompts on a screen.
func prompts(screen string) int {
	return strings.Count("\n"+screen, "\nbuiltin:script)") + strings.Count("\n"+screen, "\nbuiltin:echo)")
}

// joined returns what the window shows and has shown, with wrapped lines joined.
func (u *user) joined() string {
	u.t.Helper()
	return trimmed(u.run("capture-pane -p -J -S -"))
}

// until waits until what the window shows and has shown, with wrapped lines joined, is as wanted.
func (u *user) until(what string, wanted func(all string) bool) string {
	u.t.Helper()
	timer, look := time.NewTimer(patience), time.NewTicker(100*time.Millisecond) // files change without a word on the screen
	defer timer.Stop()
	defer look.Stop()
	for {
		all := u.joined()
		if wanted(all) {
			return all
		}
		select {
		case <-u.changed:
		case <-look.C:
		case <-timer.C:
			u.t.Fatalf("no %s within %v on the screen\n%s", what, patience, all)
		}
	}
}

// sees waits until each of the regular expressions matches what the window shows and has shown.
func (u *user) sees(wanted ...string) string {
	u.t.Helper()
	all := ""
	for _, w := range wanted {
		pattern := regexp.MustCompile(`(?m)` + w)
		all = u.until(w, pattern.MatchString)
	}
	return all
}

// idle waits until there are at least n prompts, with nothing behind the last one, and returns the screen.
func (u *user) idle(n int) string {
	u.t.Helper()
	return u.until(fmt.Sprintf("prompt %d", n), func(all string) bool {
		return prompts(all) >= n && prompt.MatchString(lastLine(all))
	})
}

func lastLine(screen string) string {
	screen = strings.TrimSuffix(screen, "\n")
	return screen[strings.LastIndexByte(screen, '\n')+1:]
}

// enter types a line and presses Enter. It returns the number of prompts before.
func (u *user) enter(line string) (before int) {
	u.t.Helper()
	before = prompts(u.joined())
	u.typed(line)
	shown := strings.TrimRight(line, " ")
	u.until("typed "+line, func(all string) bool {
		all = strings.TrimSuffix(all, "\n")
		at := strings.LastIndex(all, shown)
		return at >= 0 && !strings.Contains(all[at:], "\n")
	})
	u.keys("Enter")
	return before
}

// do enters a line, waits for the next prompt, and returns what was printed in between, in which each of the
// regular expressions has to match.
func (u *user) do(line string, wanted ...string) string {
	u.t.Helper()
	before := u.enter(line)
	return u.printed(line, u.idle(before+1), wanted...)
}

// printed returns what the last screen shows behind a line.
func (u *user) printed(line, all string, wanted ...string) string {
	u.t.Helper()
	_, out, _ := cutLast(all, ") "+line)
	if out == "" {
		_, out, _ = cutLast(all, "> "+line)
	}
	out = strings.TrimPrefix(out[:strings.LastIndexByte(strings.TrimSuffix(out, "\n"), '\n')+1], "\n")
	for _, w := range wanted {
		if !regexp.MustCompile(`(?m)` + w).MatchString(out) {
			u.t.Errorf("%s: no %q in\n%s", line, w, out)
		}
	}
	return out
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// answer waits for a question that matches a regular expression, and until keys count at it, and presses keys.
func (u *user) answer(question string, keys ...string) {
	u.t.Helper()
	pattern, footer := regexp.MustCompile(question), regexp.MustCompile("enter submit|to choose|press ")
	u.until("question "+question, func(all string) bool {
		lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
		end := strings.Join(lines[max(0, len(lines)-12):], "\n")
		return pattern.MatchString(end) && footer.MatchString(end) && !strings.Contains(end, "one moment…")
	})
	u.keys(keys...)
}

// prompted checks the prompt that waits for the user.
func (u *user) prompted(want string) {
	u.t.Helper()
	if got, _, _ := strings.Cut(lastLine(u.joined()), "  "); got != want {
		u.t.Errorf("the prompt is %q, want %q", got, want)
	}
}

// write writes a file below the home.
func (u *user) write(name, text string) {
	u.t.Helper()
	file := filepath.Join(u.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// read returns the text of a file below the home, "" if there is none.
func (u *user) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(u.home, name))
	return string(text)
}

// leaves waits until the program has ended with a status.
func (u *user) leaves(status int) {
	u.t.Helper()
	all := u.sees(`^\[exit \d+\]`)
	if want := fmt.Sprintf("[exit %d]", status); !strings.Contains(all, want) {
		u.t.Errorf("no %s on\n%s", want, all)
	}
}
