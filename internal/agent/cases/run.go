package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"loki/internal/agent/cases/cassette"
	"loki/internal/base/ask"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/tempdir"
	"loki/internal/base/value"
	"loki/internal/setup/config"
	"loki/internal/workflow/graph"
)

// Options configure Run.
type Options struct {
	Program string   // path of the program that runs agents
	Environ []string // of this process; cases get little of it
	Jobs    int      // cases that run at once; less than 1 means 1

	// AgentsDir is the directory of the user's agents, absolute; "" for none. An agent may call these and
	// those beside it, which come before the ones that are part of the program.
	AgentsDir string
	// Functions is the directory of the user's tools; "" for none.
	Functions string

	// Graph returns the graph of an agent; nil for one that is not a graph. The error keeps its
	// cases from running.
	Graph func(agent string) (*graph.Graph, error)

	// Trusted reports whether the user trusts the agent in a directory; nil trusts those in AgentsDir only. Copies of such
	// agents are trusted, and no others.
	Trusted func(dir string) bool

	// Record has the cassettes of the cases written instead of read.
	Record bool

	// Done is called for each case when it is over, in the order of the cases. It may be nil.
	Done func(*Result)
}

// Result is the result of a case.
type Result struct {
	Case     *Case
	Trace    *Trace // nil if the case could not be run
	Failures []Failure
	Duration time.Duration
}

// Passed reports whether all was as expected.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// Run runs cases side by side and returns their results in the order of the cases. Cases that
// had not begun when ctx ended fail. Agents run in copies of their directories, which are deleted at the end.
func Run(ctx context.Context, list []*Case, o Options) ([]*Result, error) {
	root, err := tempDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	copies := &stage{root: root, user: o.AgentsDir}
	results := make([]*Result, len(list))
	ready := make([]chan struct{}, len(list)) // closed once results[i] is there
	for i := range ready {
		ready[i] = make(chan struct{})
	}
	slots := make(chan struct{}, max(1, o.Jobs))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() { // ends with the case
			slots <- struct{}{}
			defer func() { <-slots }()
			defer close(ready[i])
			results[i] = o.run(ctx, c, copies)
		})
	}
	for i := range list {
		<-ready[i]
		if o.Done != nil {
			o.Done(results[i])
		}
	}
	wg.Wait()
	return results, nil
}

// tempDir makes a directory for temporary files and returns its path as the program that runs in it sees it.
func tempDir() (string, error) {
	dir, err := tempdir.Make("", "test")
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, nil
}

// run runs one case and compares what it did with what is expected.
func (o *Options) run(ctx context.Context, c *Case, copies *stage) *Result {
	r := &Result{Case: c}
	begin := time.Now()
	trace, work, err := o.play(ctx, c, copies)
	r.Trace, r.Duration = trace, time.Since(begin)
	if err != nil {
		r.Failures = []Failure{{Pos: c.Pos, What: "run", Message: err.Error()}}
	} else {
		r.Failures = Check(c, trace)
	}
	if work != "" {
		_ = os.RemoveAll(filepath.Dir(work)) // what is left is in the directory for temporary files
	}
	return r
}

// workMark replaces the path of the working directory in what a case reports.
const workMark = "$WORK"

// play runs one case. The caller removes the directory that holds work.
func (o *Options) play(ctx context.Context, c *Case, copies *stage) (t *Trace, work string, err error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	g, err := o.Graph(c.Agent)
	if err != nil {
		return nil, "", err
	}
	actors, err := copies.cast(ctx, c.Agent)
	if err != nil {
		return nil, "", fmt.Errorf("copying the agent: %w", err)
	}
	root, err := tempDir()
	if err != nil {
		return nil, "", err
	}
	work = filepath.Join(root, "work")
	b := bench{Options: o, Case: c, cast: actors, root: root, work: work}
	if err := b.furnish(); err != nil {
		return nil, work, err
	}
	res, err := process.Run(ctx, b.command())
	if _, exit := errors.AsType[*process.ExitError](err); err != nil && !exit {
		return nil, work, fmt.Errorf("%w\n%s", err, tail(b.display(res.Stderr)))
	}
	begin := graph.State{}
	if g != nil {
		begin = graph.NewState(g.InitialState).With(value.Member{Name: graph.PromptKey, Value: value.Of(c.Prompt)})
	}
	if t, err = readTrace([]byte(b.display(string(res.Stdout))), begin); err != nil {
		return nil, work, err
	}
	t.Exit, t.Stderr, t.Duration = res.ExitCode, b.display(res.Stderr), res.Duration
	if b.records() && (t.Exit == 0 || c.Expect.Exit != nil || c.Expect.Error != nil) {
		recorded, err := os.ReadFile(b.path(recordedFile))
		if err == nil {
			recorded, err = b.portable(recorded)
		}
		if err == nil {
			err = atomicfile.Write(c.Cassette, recorded, atomicfile.Options{Mode: 0o644})
		}
		if err != nil {
			return t, work, err
		}
		t.Recorded = recorded
	}
	t.Files = make(map[string]string)
	for _, f := range c.Expect.Files {
		switch text, err := os.ReadFile(filepath.Join(work, filepath.FromSlash(f.Path))); {
		case err == nil:
			t.Files[f.Path] = b.display(string(text))
		case !errors.Is(err, fs.ErrNotExist):
			return t, work, err
		}
	}
	return t, work, nil
}

// bench is where one case runs: a home with a configuration, a state directory and a working directory.
type bench struct {
	*Options
	*Case
	cast
	root, work string
}

func (b *bench) path(name string) string { return filepath.Join(b.root, name) }

// installPath returns where the agent called name is found by its name.
func (b *bench) installPath(name string) string { return filepath.Join(b.path("config/agents"), name) }

// furnish makes the directories of the case and its files.
func (b *bench) furnish() error {
	for name, text := range b.Files {
		if err := write(filepath.Join(b.work, filepath.FromSlash(name)), []byte(text)); err != nil {
			return err
		}
	}
	for _, dir := range []string{b.work, b.path("state"), b.path("home"), b.path("config/agents")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if len(b.ScriptText) > 0 {
		if err := write(b.path(filepath.Base(b.Suite.File)), b.ScriptText); err != nil {
			return err
		}
	}
	if b.Answers != nil {
		text, err := yaml.Marshal(answersFile(b.Answers))
		if err == nil {
			err = write(b.path("answers.yaml"), text)
		}
		if err != nil {
			return err
		}
	}
	for name, dir := range b.others {
		link(dir, b.installPath(name))
	}
	return nil
}

// answersFile returns the answers as the option --answers reads them.
func answersFile(answers []Answer) any {
	var (
		list = []any{}
		byID yaml.MapSlice
	)
	for _, a := range answers {
		var answer any = a.Text
		if a.List {
			answer, _ = ask.SplitAnswers(a.Text) // which was made of them
		}
		if a.Question == "" {
			list = append(list, answer)
		} else {
			byID = append(byID, yaml.MapItem{Key: a.Question, Value: answer})
		}
	}
	if byID != nil {
		return byID
	}
	return list
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// recordedFile is the cassette that is written, which takes the place of the old one only if the run went as it should.
const recordedFile = "recorded.yaml"

// records reports whether the case writes its cassette.
func (b *bench) records() bool { return b.Cassette != "" && b.Record }

// command returns the command line of the case.
func (b *bench) command() process.Command {
	args := []string{"--agent", b.agent, "--output", "ndjson"}
	if b.Model != "" {
		args = append(args, "--model", b.Model)
	}
	for name, v := range b.Variables {
		args = append(args, "--agent-variable", name, v)
	}
	if b.Yes {
		args = append(args, "--yes")
	}
	if b.Answers != nil {
		args = append(args, "--answers", b.path("answers.yaml"))
	}
	switch {
	case b.records():
		args = append(args, "--record", b.path(recordedFile))
	case b.Cassette != "":
		args = append(args, "--replay", b.Cassette)
	}
	return process.Command{
		Path: b.Program, Args: append(args, "--", b.Prompt), Dir: b.work, Env: b.environ(),
		Timeout: b.Timeout, HasTimeout: true, MaxStdout: 256 << 20,
	}
}

// passed are the variables that a case gets from this process.
var passed = [...]string{"PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "PATHEXT", "COMSPEC", "GOCOVERDIR", "GORACE"}

// environ returns the environment of the case. A case that writes a cassette needs the models of the user,
// and with them the user's configuration.
func (b *bench) environ() []string {
	var env []string
	set := map[string]string{"LOKI_STATE_DIR": b.path("state"), "NO_COLOR": "1"}
	if b.records() {
		env = b.Options.Environ
		for name, dir := range b.others {
			set[config.AgentVariable(name)+"_DATA_DIR"] = dir
		}
	} else {
		for _, name := range passed {
			if v, ok := environ.Lookup(b.Options.Environ, name); ok {
				env = append(env, name+"="+v)
			}
		}
		home := b.path("home")
		for _, name := range []string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"} {
			if (name == "HOME") != (runtime.GOOS == "windows") {
				set[name] = home
			}
		}
		set["LANG"], set["TZ"] = "C.UTF-8", "UTC"
		set["LOKI_CONFIG_DIR"] = b.path("config")
		if b.Functions != "" {
			set["LOKI_FUNCTIONS_DIR"] = b.Functions
		}
	}
	switch {
	case len(b.ScriptText) > 0:
		set["LOKI_TEST_MODEL"] = "builtin:script/" + b.path(filepath.Base(b.Suite.File))
	case b.Script != "":
		set["LOKI_TEST_MODEL"] = "builtin:script/" + b.Script
	}
	return environ.Merge(environ.Merge(environ.Merge(env, set), b.Env), map[string]string{trustedDirs: b.trustedList()})
}

// trustedDirs is the variable with directories of agents that are trusted.
const trustedDirs = "LOKI_TRUSTED_DIRS"

// trustedList returns the value of trustedDirs: the copies of agents that are trusted.
func (b *bench) trustedList() string {
	var dirs []string
	for _, p := range b.places {
		for _, name := range p.agents {
			if p.dir == b.AgentsDir || b.Trusted != nil && b.Trusted(filepath.Join(p.dir, name)) {
				dirs = append(dirs, filepath.Join(p.copied, name))
			}
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// portable returns a cassette without the paths of this time: called agents are where a run that plays it has them, and the
// agent is the one that was copied.
func (b *bench) portable(recorded []byte) ([]byte, error) {
	for _, p := range b.places {
		recorded = bytes.ReplaceAll(recorded, []byte(p.copied), []byte("$(agents)"))
	}
	if !filepath.IsAbs(b.Agent) {
		return recorded, nil
	}
	c, err := cassette.Parse(recordedFile, recorded)
	if err != nil {
		return nil, err
	}
	c.Agent = cassette.AgentAt(b.Cassette, b.Agent)
	return c.Format(), nil
}

// display returns a text of the case without the paths of this time: the working directory is $WORK, a script in the
// file of the case is there, and agents are where they were copied from.
func (b *bench) display(text string) string {
	paths := [][2]string{{b.path(filepath.Base(b.Suite.File)), b.Suite.File}, {b.work, workMark}}
	for name, dir := range b.others {
		paths = append(paths, [2]string{b.installPath(name) + string(filepath.Separator), dir + string(filepath.Separator)})
	}
	for _, p := range b.places {
		paths = append(paths, [2]string{p.copied, p.dir})
	}
	for _, r := range paths {
		text = strings.ReplaceAll(text, r[0], r[1])
		if quoted := strings.Trim(strconv.Quote(r[0]), `"`); quoted != r[0] { // in JSON, where \ is written twice
			text = strings.ReplaceAll(text, quoted, r[1])
		}
	}
	return text
}

// tail returns the last lines of a text.
func tail(text string) string {
	const most = 20
	lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return strings.Join(lines, "")
}
