package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"loki/internal/agent/harness/harnesstest"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/ptytest"
	"loki/internal/base/text/sample"
	"loki/internal/frontend/server"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/service/postgres/postgrestest"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"loki":          func() { os.Exit(Main(os.Args[1:], os.Environ(), Terminal(), Faces{Server: server.Serve})) },
		"loki-faces":    everyFace,
		"mcp-server":    mcpServer,
		"foreign-agent": harnesstest.Main,
	})
}

// suite is the tests of this package, which start the program thousands of times. Under the race detector, those run in which much happens
// at once; all do with LOKI_TEST=full, and those that -run names.
type suite struct{ *testing.M }

// Run runs the tests.
func (s suite) Run() int {
	ptytest.ObeySignals()
	flag.Parse()
	if only := flag.Lookup("test.run"); watched && !sample.Full() && only.Value.String() == "" {
		if err := only.Value.Set("^(TestScripts|TestFaces|TestAnswersOfFourProcesses|TestSameEventsFromAnyModel)$"); err != nil {
			panic(err)
		}
	}
	return s.M.Run()
}

// raced matches the scripts in which much happens at once.
var raced = regexp.MustCompile(`^(agent_children|digest|jobs|knowledge_agents|limits|map|mcp|record_children|replies_calls|runs_budget|runs_suspend|schedules|todo_chat|tools)`)

// scripts returns the scripts to run.
func scripts(t *testing.T) []string {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if !watched || sample.Full() {
		return files
	}
	return slices.DeleteFunc(files, func(file string) bool { return !raced.MatchString(filepath.Base(file)) })
}

// TestScripts runs the program as its users do: each file of testdata/script is one
// behavior, played in an empty directory with an empty home.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agents' scripts need a POSIX shell")
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("LOKI_CONFIG_DIR", filepath.Join(home, "config"))
			env.Setenv("LOKI_STATE_DIR", filepath.Join(home, "state"))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("LOKI_TRUSTED_DIRS", env.WorkDir) // trust.txtar is about what is not
			env.Setenv("GORACE", "atexit_sleep_ms=0")    // the race detector waits a second at each exit
			env.Values[serverKey{}] = openaitest.New(env.T().(testing.TB))
			env.Values[testingKey{}] = env.T()
			return os.MkdirAll(filepath.Join(home, "config"), 0o700)
		},
		Condition: func(name string) (bool, error) {
			held := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support()
			switch name {
			case "sandbox": // whether the kernel holds what programs do
				return held.Files, nil
			case "networks": // whether they can have a network of their own
				return held.Networks, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "openai": openai, "silent": silent, "posts": posts, "sent": sent, "offered": offered, "texts": texts, "count": count, "within": within, "gone": gone, "database": database, "ollama": ollama, "releases": releases,
		},
	})
}

// database makes the store of the programs an empty database, or skips the script where there is no server of databases.
func database(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: database")
	}
	ts.Setenv("LOKI_STORE", postgrestest.Database(ts.Value(testingKey{}).(testing.TB)))
}

// exits STATUS PROGRAM ARG... runs a program that ends with the status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// within SECONDS STATUS PROGRAM ARG... is exits for a program that has to end in time.
func within(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := strconv.Atoi(args[0])
	ts.Check(err)
	begin := time.Now()
	exits(ts, neg, args[1:])
	if took := time.Since(begin); took > time.Duration(limit)*time.Second {
		ts.Fatalf("took %s, more than %d s", took, limit)
	}
}

type serverKey struct{}

// openai REPLY... scripts the loopback server and points OPENAI_API_BASE to it. A
// reply is text=TEXT, drop=TEXT, status=CODE, garbage, always=TEXT or file=NAME, whose body is
// that of a stream or, if it begins with {, of a reply in one piece, and after !400 of a
// rejection; \n in a text is a line feed.
func openai(ts *testscript.TestScript, _ bool, args []string) {
	server := ts.Value(serverKey{}).(*openaitest.Server)
	ts.Setenv("OPENAI_API_BASE", server.URL())
	for _, arg := range args {
		kind, text, _ := strings.Cut(arg, "=")
		text = strings.ReplaceAll(text, `\n`, "\n")
		switch kind {
		case "text":
			server.Script(openaitest.Text(strings.SplitAfter(text, " ")...))
		case "always":
			server.Always(openaitest.Text(strings.SplitAfter(text, " ")...))
		case "drop":
			server.Script(openaitest.Drop(strings.SplitAfter(text, " ")...))
		case "file":
			body, contentType := ts.ReadFile(text), "text/event-stream"
			if strings.HasPrefix(body, "{") {
				contentType = "application/json"
			}
			if failure, ok := strings.CutPrefix(body, "!400 "); ok {
				server.Script(wiretest.Status(400, failure))
				break
			}
			server.Script(wiretest.Body(contentType, body))
		case "garbage":
			server.Script(openaitest.Garbage())
		case "status":
			code, err := strconv.Atoi(text)
			ts.Check(err)
			server.Script(wiretest.Status(code, fmt.Sprintf(`{"error":{"message":"status %d of the test"}}`, code), "Retry-After", "7"))
		case "refuse":
			server.Script(wiretest.Status(429, `{"error":{"message":"slow down"}}`, "Retry-After", text))
		case "models":
			server.Models(strings.Split(text, ",")...)
		case "list":
			code, err := strconv.Atoi(text)
			ts.Check(err)
			server.Route("GET /models", wiretest.Status(code, `{"error":{"message":"no"}}`))
		default:
			ts.Fatalf("unknown reply %s", arg)
		}
	}
}

// silent makes the server of OpenAI's clients one that never answers.
func silent(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("OPENAI_API_BASE", "http://"+l.Addr().String()+"/v1")
}

// posts N checks how many requests the server got.
func posts(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := len(ts.Value(serverKey{}).(*openaitest.Server).Requests()); got != want {
		ts.Fatalf("the server got %d requests, want %d", got, want)
	}
}

// offered NAME... checks that the last request offers the model these tools and no others,
// in this order.
func offered(ts *testscript.TestScript, neg bool, args []string) {
	requests := ts.Value(serverKey{}).(*openaitest.Server).Requests()
	if neg || len(requests) == 0 {
		ts.Fatalf("the server got no request, or offered was negated, which it cannot be")
	}
	var body struct {
		Tools []struct {
			Function struct{ Name string }
		}
	}
	ts.Check(json.Unmarshal(requests[len(requests)-1].Body, &body))
	names := []string{}
	for _, t := range body.Tools {
		names = append(names, t.Function.Name)
	}
	if !slices.Equal(names, args) {
		ts.Fatalf("offered are %q, want %q", names, args)
	}
}

// sent TEXT... checks that the last request holds each text, or none with a "!".
func sent(ts *testscript.TestScript, neg bool, args []string) {
	requests := ts.Value(serverKey{}).(*openaitest.Server).Requests()
	if len(requests) == 0 {
		ts.Fatalf("the server got no request")
	}
	body := string(requests[len(requests)-1].Body)
	for _, text := range args {
		if strings.Contains(body, text) == neg {
			ts.Fatalf("%q in the request: %t, in %s", text, !neg, body)
		}
	}
}

// texts DIR N writes N small text files to a new directory.
func texts(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.MkdirAll(dir, 0o755))
	for i := range n {
		text := fmt.Sprintf("Note %d is about bees and honey. Its number is %d. It belongs to the set of notes.\n", i, i)
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("note-%03d.txt", i)), []byte(text), 0o600))
	}
}

// count N TEXT FILE checks how often a text is in a file.
func count(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := strings.Count(ts.ReadFile(args[2]), args[1]); got != want {
		ts.Fatalf("%q is %d times in %s, want %d", args[1], got, args[2], want)
	}
}

// gone FILE... waits until the processes whose ids are in the files are gone.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		pid := strings.TrimSpace(ts.ReadFile(file))
		if err := waitGone(pid, time.Now().Add(5*time.Second)); err != nil {
			ts.Fatalf("%s: %v", file, err)
		}
	}
}

// waitGone waits until no process has the id pid. One that has ended and that nobody
// has waited for counts as gone.
func waitGone(pid string, deadline time.Time) error {
	for {
		state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
		if err != nil || strings.HasPrefix(string(state), "Z") {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %s is still there, in state %s", pid, state)
		}
		time.Sleep(10 * time.Millisecond) // another process's end cannot be waited for
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// emptyHome is the environment of a program whose home is empty.
func emptyHome(dir string, more ...string) []string {
	home := filepath.Join(dir, "home")
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LOKI_CONFIG_DIR=" + filepath.Join(home, "config"),
		"LOKI_STATE_DIR=" + filepath.Join(home, "state"), "NO_COLOR=1", "LOKI_TRUSTED_DIRS=" + dir,
	}, more...)
}
