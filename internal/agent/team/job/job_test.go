//go:build linux

package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loki/internal/agent/team/job"
	"loki/internal/base/ask"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
)

// rig is a conversation's list of jobs and a box with the tools for them.
type rig struct {
	t       *testing.T
	dir     string
	list    *job.List
	box     *tool.Box
	secrets redact.Secrets
	options *job.Options
}

func newRig(t *testing.T, s config.Jobs) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	if s.Max == 0 {
		s.Max = 8
	}
	if s.MaxAge == 0 {
		s.MaxAge = time.Hour
	}
	if s.LogBytes == 0 {
		s.LogBytes = 1 << 20
	}
	r.options = &job.Options{Jobs: s, Dir: filepath.Join(t.TempDir(), "jobs"), Secrets: &r.secrets}
	r.list = job.New(r.options)
	t.Cleanup(func() { r.list.Close("the test ended") })
	r.equip()
	return r
}

// equip gives the rig a box with the tools for its list.
func (r *rig) equip() {
	t := r.t
	var tools []tool.Tool
	for _, native := range builtin.Tools(builtin.Options{
		Child: environ.Child{Environ: []string{"PATH=" + os.Getenv("PATH"), "LOKI_SHELL=bash", "HOME=" + os.Getenv("HOME")}}, Dir: r.dir,
		Sandbox: sandbox.New(sandbox.Options{Workspace: r.dir, State: t.TempDir(), Getenv: os.Getenv}),
	}) {
		tools = append(tools, builtin.InBackground(native, r.list))
	}
	set, err := tool.NewSet(append(tools, r.list.Tools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	r.box = tool.NewBox(tool.Options{Tools: set, AutoConfirm: true, Asker: ask.Func(func(context.Context, ask.Question) (string, error) { return "yes", nil })})
}

// result is what a model reads about a job.
type result struct {
	Job, Status, Reason, Output, Sandbox string
	Exit                                 *int
	Ready, Matched                       *bool
	From, To, Dropped                    int64
	Jobs                                 []job.Info
	Error                                string `json:"tool_call_error"`
	Text                                 string `json:"-"` // of it all
}

func (r *rig) call(name string, args map[string]any) result {
	r.t.Helper()
	data, _ := json.Marshal(args)
	text, _, err := r.box.Call(r.t.Context(), chat.ToolCall{ID: "1", Name: name, Arguments: string(data)}, steps.Steps{})
	if err != nil {
		r.t.Fatal(err)
	}
	got := result{Text: text}
	if json.Unmarshal([]byte(text), &got) != nil { // the sandbox stopped something
		var outer struct{ Output result }
		_ = json.Unmarshal([]byte(text), &outer) // the output of a command is a text
		got = outer.Output
		got.Text = text
	}
	return got
}

func (r *rig) start(command string, more ...any) result {
	r.t.Helper()
	args := map[string]any{"command": command, "background": true}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return r.call("execute_command", args)
}

func TestJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	got := r.start("echo begun; echo careful >&2; until [ -e $TMPDIR/go ]; do read -t 0.05 <> <(:); touch $TMPDIR/go; done; echo ready now; sleep 600", "ready", "^ready")
	if got.Status != job.Running || got.Ready == nil || !*got.Ready || got.Output != "begun\ncareful\nready now\n" {
		t.Fatalf("the start returned %+v", got)
	}
	if list := r.call("job__list", nil); len(list.Jobs) != 1 || list.Jobs[0].ID != got.Job || list.Jobs[0].Status != job.Running {
		t.Errorf("the list is %+v", list)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job, "since": 6}); out.From != 6 || out.Output != "careful\nready now\n" || out.To != 24 {
		t.Errorf("the output is %+v", out)
	}
	if killed := r.call("job__kill", map[string]any{"id": got.Job}); killed.Status != job.Killed || killed.Exit != nil {
		t.Errorf("the kill returned %+v", killed)
	}
	if ended := r.list.TakeEnded(); len(ended) != 0 {
		t.Errorf("what the model did is reported again: %+v", ended)
	}
}

func TestJobThatEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	if got := r.start("echo no >&2; exit 3"); got.Status != job.Exited || got.Exit == nil || *got.Exit != 3 || got.Output != "no\n" {
		t.Errorf("the start returned %+v", got)
	}
	got := r.start("read -t 1.5 <> <(:); printf done; exit 4")
	if got.Status != job.Running {
		t.Fatalf("the start returned %+v", got)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job, "wait": "end", "timeout": 60}); out.Status != job.Exited || *out.Exit != 4 || out.Output != "done" {
		t.Errorf("the output is %+v", out)
	}
	if ended := r.list.TakeEnded(); len(ended) != 2 || *ended[1].Exit != 4 || ended[1].Status != job.Exited {
		t.Errorf("ended are %+v", ended)
	}
	if ended := r.list.TakeEnded(); len(ended) != 0 {
		t.Errorf("ended jobs are reported twice: %+v", ended)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	got := r.start("echo one; read -t 1.3 <> <(:); printf 'no line end'; sleep 600")
	if out := r.call("job__output", map[string]any{"id": got.Job, "since": got.To, "wait": "output"}); out.Output != "no line end" {
		t.Errorf("wait for output: %+v", out)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job, "wait": "pattern", "pattern": "^no l.ne"}); out.Matched == nil || !*out.Matched {
		t.Errorf("wait for a pattern: %+v", out)
	}
	if out := r.call("job__output", map[string]any{"id": got.Job, "wait": "pattern", "pattern": "never", "timeout": 1}); out.Matched == nil || *out.Matched || out.Status != job.Running {
		t.Errorf("wait in vain: %+v", out)
	}
	for _, args := range []map[string]any{
		{"id": got.Job, "wait": "forever"},
		{"id": got.Job, "wait": "pattern"},
		{"id": got.Job, "pattern": "x"},
		{"id": got.Job, "wait": "pattern", "pattern": "("},
		{"id": "web"},
	} {
		if out := r.call("job__output", args); out.Error == "" {
			t.Errorf("%v: no error", args)
		}
	}
	if out := r.call("job__output", map[string]any{"id": "job-00000000"}); out.Status != job.Lost {
		t.Errorf("a job of another program: %+v", out)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{Max: 1, MaxAge: 1500 * time.Millisecond})
	got := r.start("sleep 600")
	if second := r.start("sleep 600"); !strings.Contains(second.Error, "job__kill") {
		t.Errorf("a second job: %+v", second)
	}
	out := r.call("job__output", map[string]any{"id": got.Job, "wait": "end", "timeout": 60})
	if out.Status != job.Killed || !strings.Contains(out.Reason, "longest") {
		t.Errorf("an old job: %+v", out)
	}
	for name, args := range map[string]map[string]any{
		"ready alone":    {"command": "true", "ready": "x"},
		"a bad pattern":  {"command": "true", "background": true, "ready": "("},
		"ports at read":  {"command": "true", "background": true, "ports": []int{5173}},
		"a low port":     {"command": "true", "background": true, "ports": []int{80}, "sandbox": "network"},
		"no command":     {"command": " ", "background": true},
		"ports of a few": {"command": "true", "ports": []int{5173}, "sandbox": "network"},
	} {
		if got := r.call("execute_command", args); got.Error == "" {
			t.Errorf("%s: no error: %+v", name, got)
		}
	}
	if job.New(&job.Options{}) != nil {
		t.Error("max 0 gives a list")
	}
}

// TestTermination checks that all processes of a job are asked to end, and that none stays.
func TestTermination(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]string{"read": "read", "full": "full"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, config.Jobs{})
			mark := "31415" + strconv.Itoa(os.Getpid())
			got := r.start(fmt.Sprintf("trap 'echo bye; exit 0' TERM; (trap '' TERM; exec -a stubborn sleep %s.1) & setsid sleep %s.2 & echo up; while :; do sleep 0.1; done", mark, mark), "sandbox", level, "ready", "up")
			if got.Status != job.Running {
				t.Fatalf("the start returned %+v", got)
			}
			killed := r.call("job__kill", map[string]any{"id": got.Job})
			if killed.Status != job.Killed || !strings.HasSuffix(killed.Output, "bye\n") {
				t.Errorf("the kill returned %+v", killed)
			}
			if left := processes(t, mark); left != "" {
				t.Errorf("left are %s", left)
			}
		})
	}
}

// processes returns the command lines of processes that have mark in them.
func processes(t *testing.T, mark string) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), mark) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return strings.Join(found, "; ")
}

// TestNews checks that the end of a job is reported once to the user and once to the model.
func TestNews(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	got := r.start("read -t 1.2 <> <(:); exit 3")
	<-r.list.News()
	if ended := r.list.TakeEnded(); len(ended) != 1 || ended[0].ID != got.Job {
		t.Errorf("ended are %+v", ended)
	}
	if notes := r.list.Notes(t.Context()); len(notes) != 1 || !strings.Contains(notes[0], got.Job) {
		t.Errorf("the model reads %q", notes)
	}
	if notes := r.list.Notes(t.Context()); len(notes) != 0 {
		t.Errorf("the model reads again %q", notes)
	}
	r.start("exit 3") // which the result says
	if notes := r.list.Notes(t.Context()); len(notes) != 0 {
		t.Errorf("the model reads of a job that had ended in its call %q", notes)
	}
}

// TestFullDisk runs this test program again as a process that cannot write more than 4 KiB into a file, as on a disk that is full: the
// job runs to its end, and a line says that its output is missing.
func TestFullDisk(t *testing.T) {
	const variable, limit = "JOB_TEST_FULL", 4096
	if os.Getenv(variable) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), variable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	r := newRig(t, config.Jobs{})
	got := r.start("wait_for() { until [ -e $1 ]; do read -t 0.05 <> <(:); done; }; wait_for full; for i in {1..3000}; do echo $i; done; wait_for lost; echo over; exit 5", "sandbox", "full")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	touch := func(file string) {
		if err := os.WriteFile(filepath.Join(r.dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	touch("full")
	for to := int64(0); to < 13893; { // the bytes of the numbers
		to = r.call("job__output", map[string]any{"id": got.Job, "since": to, "wait": "output"}).To
	}
	touch("lost")
	out := r.call("job__output", map[string]any{"id": got.Job, "since": 0, "wait": "end", "timeout": 60})
	if out.Exit == nil || *out.Exit != 5 || out.Dropped == 0 || !strings.HasSuffix(out.Output, "over\n") || !strings.Contains(out.Text, "could not be written (file too large)") {
		t.Errorf("the output is %+v", out)
	}
	told := &eventtest.Collector{}
	r.list.Tell(t.Context(), event.NewScope(told, event.Source{}, time.Now))
	r.list.Tell(t.Context(), event.NewScope(told, event.Source{}, time.Now))
	if warned := eventtest.Bodies[event.Warning](told); len(warned) != 1 || !strings.Contains(warned[0].Text, got.Job) {
		t.Errorf("warnings are %+v", warned)
	}
}

// TestStubborn checks that a job that ignores SIGTERM is killed.
func TestStubborn(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	got := r.start("trap '' TERM; echo up; while :; do sleep 0.1; done", "ready", "up")
	began := time.Now()
	ended := r.list.Close("the conversation ended")
	if len(ended) != 1 || ended[0].ID != got.Job || ended[0].Reason != "the conversation ended" {
		t.Errorf("ended are %+v", ended)
	}
	if took := time.Since(began); took < 4*time.Second || took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestHostileOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{LogBytes: 64 << 10})
	const secret = "sk-not-for-anyone-0123456789"
	r.secrets.Add("KEY", secret)
	got := r.start(`for c in a s k - n o; do printf %s "$c"; done; printf 'x sk-not-for-'; read -t 0.3 <> <(:); printf 'anyone-0123456789 y\n'; printf 'a\0b\xff\xc3\xa9'; printf sk-no; exit 0`)
	out := r.call("job__output", map[string]any{"id": got.Job, "wait": "end"})
	if want := "ask-nox ***KEY*** y\na\uFFFDb\uFFFD\u00e9sk-no"; out.Output != want {
		t.Errorf("got %q, want %q", out.Output, want)
	}

	long := r.start(`head -c 300000 /dev/zero | tr '\0' x; printf 'the end'`)
	out = r.call("job__output", map[string]any{"id": long.Job, "wait": "end", "timeout": 60})
	if out.To-out.From != int64(len(out.Output)) || out.Dropped != out.From || out.From < 300007-64<<10 || !strings.HasSuffix(out.Output, "the end") || out.To != 300007 {
		t.Errorf("of a long output: from %d, to %d, dropped %d, %d bytes", out.From, out.To, out.Dropped, len(out.Output))
	}
	if infos := r.list.All(); infos[1].Bytes != 300007 {
		t.Errorf("%+v", infos[1])
	}
}

// TestWindows reads a long output in parts that join without a gap, also between the bytes of a character.
func TestWindows(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.Jobs{})
	got := r.start(`for i in {1..30000}; do printf 'z\xc3\xa9%d\n' $i; done`)
	var all strings.Builder
	for since := int64(0); ; {
		out := r.call("job__output", map[string]any{"id": got.Job, "since": since, "wait": "end", "timeout": 60})
		if out.Dropped != 0 || out.From != since {
			t.Fatalf("%+v", out)
		}
		all.WriteString(out.Output)
		if out.To == since {
			break
		}
		since = out.To
	}
	var want strings.Builder
	for i := range 30000 {
		fmt.Fprintf(&want, "zé%d\n", i+1)
	}
	if all.String() != want.String() {
		t.Errorf("%d bytes, want %d", all.Len(), want.Len())
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	if s := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support(); !s.Networks {
		t.Skip("no networks: " + s.Missing)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	for name, host := range map[string]string{"ipv4": "127.0.0.1", "ipv6": "::1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, config.Jobs{})
			if err := os.WriteFile(filepath.Join(r.dir, "hello.txt"), []byte("hello from the job"), 0o600); err != nil {
				t.Fatal(err)
			}
			port := freePort(t)
			address := fmt.Sprintf("http://127.0.0.1:%d/hello.txt", port)
			got := r.start(fmt.Sprintf("python3 -u -m http.server -b %s %d", host, port), "sandbox", "network", "ports", []int{port}, "ready", "Serving")
			if got.Ready == nil || !*got.Ready {
				t.Fatalf("the start returned %+v", got)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
			for range 150 { // more than there are sockets
				if text, err := fetch(t.Context(), client, address); err != nil || text != "hello from the job" {
					t.Fatalf("got %q, %v", text, err)
				}
			}
			for _, level := range []string{"read", "write", "network"} {
				text := "import urllib.request; print(urllib.request.urlopen('" + address + "').read().decode())"
				data, _ := json.Marshal(map[string]any{"command": `python3 -c "` + text + `"`, "sandbox": level})
				out, _, err := r.box.Call(t.Context(), chat.ToolCall{ID: "2", Name: "execute_command", Arguments: string(data)}, steps.Steps{})
				if err != nil || !strings.Contains(out, "hello from the job") {
					t.Errorf("level %s: %s, %v", level, out, err)
				}
			}
			if second := r.start("true", "sandbox", "network", "ports", []int{port}); !strings.Contains(second.Error, "cannot be had") {
				t.Errorf("a port that is taken: %+v", second)
			}
			if host == "127.0.0.1" {
				r.call("job__kill", map[string]any{"id": got.Job})
			} else {
				r.list.Close("over")
			}
			if text, err := fetch(t.Context(), client, address); err == nil {
				t.Errorf("it can still be reached: %q", text)
			}
		})
	}
}

func fetch(ctx context.Context, client *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestRunsLater checks that files that run later are withheld while a call starts a job, and named when it ends.
func TestRunsLater(t *testing.T) {
	t.Parallel()
	if s := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support(); !s.Files {
		t.Skip("no sandbox: " + s.Missing)
	}
	r := newRig(t, config.Jobs{})
	got := r.start("touch .startrc; echo up; until [ -e go ]; do read -t 0.05 <> <(:); done; touch .laterc", "sandbox", "write", "ready", "up")
	if !strings.Contains(got.Text, ".startrc.withheld") {
		t.Errorf("the start returned %s", got.Text)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		for _, e := range r.list.TakeEnded() {
			ended = true
			if !strings.Contains(e.Notice, ".laterc") || !strings.Contains(e.String(), e.Notice) {
				t.Errorf("the end is %+v", e)
			}
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
