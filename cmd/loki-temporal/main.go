// Command loki-temporal runs graph agents on Temporal: it starts runs, answers their questions, and is the worker that does their
// work. docs/temporal.md describes it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"loki/cmd/loki-temporal/driver"
	"loki/internal/agent"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/conversation/launch"
	"loki/internal/conversation/launch/background"
	"loki/internal/knowledge/input"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the process at once
	c := &command{out: os.Stdout, err: os.Stderr}
	err := c.run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "loki-temporal: "+c.shown(err.Error()))
		if hint := fault.HintOf(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint: "+c.shown(hint))
		}
	}
	os.Exit(fault.ExitCode(err))
}

// command is one run of the program.
type command struct {
	out, err io.Writer
	app      *app.App
	runs     *driver.Runs

	agent     string
	variables [][2]string
	model     string
	worker    bool
	resume    string
	show      string
	cancel    string
	fork      string
	signal    string
	typed     []string
	answers   string
	state     bool
	force     bool
	yes       bool
	detach    bool
	output    string
	queue     string
	heartbeat time.Duration
	text      []string

	schedules                   bool
	put, pause, unpause, remove string // a schedule
}

// shown returns a text without secrets.
func (c *command) shown(text string) string {
	if c.app == nil {
		return text
	}
	return c.app.Hide(text)
}

// options reads the command line.
func (c *command) options(args []string) error {
	f := pflag.NewFlagSet("loki-temporal", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetInterspersed(false)
	f.SetOutput(c.err)
	f.StringVarP(&c.agent, "agent", "a", "", "start a run of this graph `AGENT`, with the words that follow as its prompt")
	var variables []string
	f.StringArrayVar(&variables, "agent-variable", nil, "give a variable of the agent a value: `NAME VALUE`")
	f.StringVarP(&c.model, "model", "m", "", "`MODEL` of the run")
	f.BoolVar(&c.detach, "detach", false, "print the id of the run and leave it to the workers")
	f.StringVar(&c.resume, "resume", "", "follow the run `ID`; resume it where it stopped if it failed or was canceled")
	f.StringArrayVar(&c.typed, "answer", nil, "with --resume: `TEXT` answers its only question, QUESTION=TEXT one of several; may be repeated")
	f.StringVar(&c.answers, "answers", "", "with --resume: YAML `FILE` with answers, by the names of the questions")
	f.BoolVar(&c.force, "force", false, "with --resume or --fork: continue although the agent has changed")
	f.BoolVar(&c.yes, "yes", false, "run tools without asking")
	f.StringVar(&c.show, "run", "", "show the status of the run `ID`")
	f.BoolVar(&c.state, "state", false, "with --run: show the state")
	f.StringVar(&c.cancel, "cancel", "", "stop the run `ID`; it can be resumed, unless it has compensations, which undo what it did")
	f.StringVar(&c.fork, "fork", "", "begin a new run from the run `ID`, as it was after its last super-step, or from ID@STEP")
	f.StringVar(&c.signal, "signal", "", "give the run `ID` a signal, such as: --signal ID 'paid={\"sum\": 5}'")
	f.StringVar(&c.put, "schedule-put", "", "copy the schedule `NAME` of the configuration, as it is now, to the server, which then starts its runs")
	f.StringVar(&c.pause, "schedule-pause", "", "pause the schedule `NAME` of the server")
	f.StringVar(&c.unpause, "schedule-continue", "", "end the pause of the schedule `NAME`")
	f.StringVar(&c.remove, "schedule-delete", "", "delete the schedule `NAME` from the server; its runs stay")
	f.BoolVar(&c.schedules, "schedules", false, "list the schedules of the server")
	f.BoolVar(&c.worker, "worker", false, "execute the nodes of runs, until a signal ends the worker")
	f.StringVar(&c.output, "output", "text", "`FORMAT`: text, json, or ndjson for the events as they are recorded")
	f.StringVar(&c.queue, "task-queue", "loki", "`NAME` of the task queue")
	f.DurationVar(&c.heartbeat, "heartbeat", driver.DefaultHeartbeat, "when starting a run: a worker that sends no heartbeat for this `TIME` counts as dead")
	if err := f.Parse(pairs(args)); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fault.Wrap(fault.Usage, err, "").WithHint("see loki-temporal --help")
	}
	c.text = f.Args()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "\x00")
		c.variables = append(c.variables, [2]string{name, value})
	}
	return c.check()
}

// pairs joins the two values of --agent-variable for the flag library.
func pairs(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" || !strings.HasPrefix(args[i], "-") && (i == 0 || !strings.HasPrefix(args[i-1], "-")) {
			return append(joined, args[i:]...)
		}
		joined = append(joined, args[i])
		if args[i] == "--agent-variable" && i+2 < len(args) {
			joined = append(joined, args[i+1]+"\x00"+args[i+2])
			i += 2
		}
	}
	return joined
}

// check refuses options that do not go together.
func (c *command) check() error {
	asked := 0
	for _, is := range []bool{c.agent != "", c.resume != "", c.show != "", c.cancel != "", c.fork != "", c.signal != "", c.schedules, c.put != "", c.pause != "", c.unpause != "", c.remove != "", c.worker} {
		if is {
			asked++
		}
	}
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Usage, format, args...).WithHint("see loki-temporal --help")
	}
	switch {
	case asked != 1:
		return refuse("one of --agent, --resume, --run, --fork, --signal, --cancel, --worker, --schedules and --schedule-put, -pause, -continue, -delete is needed")
	case c.resume == "" && (len(c.typed) > 0 || c.answers != ""):
		return refuse("--answer and --answers go with --resume")
	case c.resume == "" && c.fork == "" && c.force:
		return refuse("--force goes with --resume and --fork")
	case len(c.typed) > 0 && c.answers != "":
		return refuse("--answer and --answers do not go together")
	case c.state && c.show == "":
		return refuse("--state goes with --run")
	case c.signal != "" && len(c.text) != 1:
		return refuse("--signal ID needs one NAME=JSON")
	case c.agent == "" && (c.signal == "" && len(c.text) > 0 || len(c.variables) > 0 || c.model != ""):
		return refuse("a prompt, --model and --agent-variable go with --agent")
	case c.agent == "" && c.resume == "" && c.fork == "" && (c.yes || c.detach):
		return refuse("--yes and --detach go with --agent, --resume and --fork")
	case !slices.Contains([]string{"text", "json", "ndjson"}, c.output):
		return refuse("--output %s: it has to be text, json or ndjson", c.output)
	case c.heartbeat < time.Second:
		return refuse("--heartbeat %s: it has to be a second or more", c.heartbeat)
	}
	return nil
}

func (c *command) run(ctx context.Context, args []string) (err error) {
	if err := c.options(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if c.app, err = app.New(app.Options{Environ: os.Environ(), Model: c.model}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.app.Close()) }()
	for _, w := range c.app.Notices.Take() {
		fmt.Fprintln(c.err, "warning: "+w)
	}
	if c.app.DryRun() {
		return fault.New(fault.Usage, "a dry run cannot be a run on Temporal").WithHint("set dry_run: false in config.yaml, or try the agent with: loki --dry-run -a AGENT")
	}
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fault.Wrap(fault.Config, err, "the settings of the Temporal client (TEMPORAL_ADDRESS and others)")
	}
	if key := c.app.Env.Get(driver.KeyVariable); key != "" {
		if err := driver.Encrypt(&o, key); err != nil {
			return err
		}
	}
	o.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	server, err := client.DialContext(ctx, o)
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the Temporal server %s", o.HostPort).
			WithHint("start one, such as with: temporal server start-dev; TEMPORAL_ADDRESS names another one")
	}
	defer server.Close()
	c.runs = &driver.Runs{Client: server, App: c.app, Queue: c.queue, Heartbeat: c.heartbeat, Converter: o.DataConverter}
	switch {
	case c.worker:
		return c.work(ctx)
	case c.agent != "":
		return c.start(ctx)
	case c.resume != "":
		return c.goOn(ctx)
	case c.fork != "":
		return c.forkRun(ctx)
	case c.signal != "":
		return c.sendSignal(ctx)
	case c.cancel != "":
		return c.runs.Cancel(ctx, c.cancel)
	case c.schedules:
		return c.listSchedules(ctx)
	case c.put != "":
		return c.putSchedule(ctx)
	case c.pause != "":
		return c.runs.PauseSchedule(ctx, c.pause, true)
	case c.unpause != "":
		return c.runs.PauseSchedule(ctx, c.unpause, false)
	case c.remove != "":
		return c.runs.DeleteSchedule(ctx, c.remove)
	}
	return c.status(ctx)
}

// work does the work of runs.
func (c *command) work(ctx context.Context) error {
	w := c.runs.NewWorker()
	if err := w.Start(); err != nil {
		return fault.Wrap(fault.Failure, err, "starting the worker")
	}
	fmt.Fprintf(c.err, "working on task queue %s\n", c.queue)
	<-ctx.Done()
	w.Stop()
	return nil
}

// warnings shows events of work that is done in this process.
func (c *command) warnings() event.Scope {
	return c.app.Events(event.Func(func(_ context.Context, ev event.Event) error {
		if w, ok := ev.Body.(event.Warning); ok {
			fmt.Fprintln(c.err, "warning: "+w.Text)
		}
		return nil
	}))
}

// start begins a run.
func (c *command) start(ctx context.Context) error {
	ref, err := c.app.Agents.Find(c.agent)
	if err != nil {
		return err
	}
	of, findings, err := c.app.Agents.Load(ref)
	if err != nil {
		return err
	}
	for _, f := range findings {
		fmt.Fprintln(c.err, "warning: "+f.String())
	}
	given := make(map[string]string, len(c.variables))
	for _, v := range c.variables {
		given[v[0]] = v[1]
	}
	none := func(graph.Variable) (string, bool, error) { return "", false, nil }
	variables, err := agent.Values(of.InForce.Variables, given, none)
	if err != nil {
		return err
	}
	job, err := c.app.AgentJob(ctx, launch.Run{
		Agent: of, Prompt: input.Text(c.text, ""), Variables: variables, Given: given, Model: c.model, NoStream: true,
		Events: c.warnings(), Asker: ask.Unavailable{}, Yes: c.yes,
	})
	if err != nil {
		return err
	}
	if job.Release != nil {
		defer job.Release()
	}
	id, err := c.runs.Start(ctx, job, driver.Terms{Yes: c.yes})
	return c.followNew(ctx, id, err)
}

// putSchedule hands a schedule of the configuration to the server.
func (c *command) putSchedule(ctx context.Context) error {
	all, err := c.app.Background.Schedules(nil, nil).Configured(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s *schedule.Schedule) bool { return s.Name == c.put })
	if i < 0 {
		return fault.New(fault.NotFound, "the configuration has no schedule %s", c.put).
			WithHint("write it into config.yaml, below schedules; those of loki --schedule start runs of loki only")
	}
	if _, err := driver.Translate(all[i]); err != nil {
		return err
	}
	s := all[i].Fill(time.Now())
	of, err := c.app.Background.InstalledAgent(s.Agent)
	if err != nil {
		return err
	}
	job, err := c.app.Background.Job(ctx, background.Run{Agent: of, Prompt: s.Prompt, Variables: s.Variables, Model: s.Model, Terms: run.Terms{Yes: s.Yes}, Events: c.warnings()})
	if err != nil {
		return err
	}
	if job.Release != nil {
		defer job.Release()
	}
	return c.runs.PutSchedule(ctx, s, job)
}

// listSchedules shows the schedules of the server.
func (c *command) listSchedules(ctx context.Context) error {
	all, err := c.runs.Schedules(ctx)
	if err != nil {
		return err
	}
	if c.output != "text" {
		return json.NewEncoder(c.out).Encode(map[string]any{"schedules": all})
	}
	for _, s := range all {
		state, next := "on", "-"
		if s.Paused {
			state = "paused"
		} else if !s.Next.IsZero() {
			next = s.Next.Local().Format(time.DateTime)
		}
		fmt.Fprintf(c.out, "%-20s %-6s %-19s %s\n", s.Name, state, next, cmp.Or(s.Last, "-"))
	}
	return nil
}

// followNew follows a run that began, unless it is left to the workers.
func (c *command) followNew(ctx context.Context, id string, err error) error {
	if err != nil {
		return err
	}
	if c.detach {
		_, err = fmt.Fprintln(c.out, id)
		return err
	}
	fmt.Fprintln(c.err, "run "+id)
	return c.follow(ctx, id)
}

// forkRun begins a run from another one.
func (c *command) forkRun(ctx context.Context) error {
	id, at, found := strings.Cut(c.fork, "@")
	step := -1
	if found {
		var err error
		if step, err = strconv.Atoi(at); err != nil || step < 0 {
			return fault.New(fault.Usage, "--fork %s: ID or ID@STEP is expected, with the number of a super-step", c.fork)
		}
	}
	fork, err := c.runs.Fork(ctx, id, step, driver.Terms{Yes: c.yes, Force: c.force}, run.Continuation{Events: c.warnings(), Asker: ask.Unavailable{}})
	return c.followNew(ctx, fork, err)
}

// sendSignal gives a run a signal.
func (c *command) sendSignal(ctx context.Context) error {
	name, text, found := strings.Cut(c.text[0], "=")
	if !found {
		text = "null"
	}
	v, err := value.ParseJSON([]byte(text))
	if err != nil || name == "" {
		return fault.Wrap(fault.Usage, err, "--signal %s %s: NAME=JSON is expected", c.signal, c.text[0]).
			WithHint("a text needs quotes of its own: --signal %s 'paid=\"in cash\"'", c.signal)
	}
	unchecked, err := c.runs.Signal(ctx, c.signal, driver.Signal{Name: name, Value: v})
	switch {
	case err != nil:
		return err
	case unchecked:
		fmt.Fprintln(c.err, "no worker is at work: the signal is on record, and is looked at when one is")
	default:
		fmt.Fprintf(c.err, "signal %s of run %s is on record\n", name, c.signal)
	}
	return nil
}

// goOn answers the questions of a run, resumes it if it is over, and follows it.
func (c *command) goOn(ctx context.Context) error {
	if len(c.typed) > 0 || c.answers != "" {
		l := driver.Letter{Typed: c.typed}
		if c.answers != "" {
			var err error
			if l.Answers, l.Lists, err = readAnswers(c.answers); err != nil {
				return err
			}
		}
		unchecked, err := c.runs.Answer(ctx, c.resume, l)
		if err != nil {
			return err
		}
		if unchecked {
			fmt.Fprintln(c.err, "no worker is at work: the answer is on record, and is looked at when one is")
		}
	} else if err := c.runs.Resume(ctx, c.resume, driver.Terms{Yes: c.yes, Force: c.force}, run.Continuation{Events: c.warnings(), Asker: ask.Unavailable{}}); err != nil {
		return err
	}
	if c.detach {
		return nil
	}
	return c.follow(ctx, c.resume)
}

// readAnswers reads a mapping of question names to answers, some of which may be lists.
func readAnswers(path string) (answers map[string]string, lists []string, err error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fault.Wrap(fault.NotFound, err, "reading the answers")
	}
	doc, err := yamldoc.Parse(path, src)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Config, err, "reading the answers")
	}
	given := make(map[string]ask.Given)
	for e := range doc.Root().Map().All() {
		if answer, ok := ask.ReadAnswer(e.Node); ok {
			given[e.Key] = answer
		}
	}
	if err := doc.Err(); err != nil {
		return nil, nil, fault.Wrap(fault.Config, err, "reading the answers")
	}
	answers, lists = ask.Texts(given)
	return answers, lists, nil
}

// follow waits until a run is over or needs answers, and prints the result. A signal leaves the run to the workers.
func (c *command) follow(ctx context.Context, id string) error {
	s, err := c.runs.Wait(ctx, id, func(ev json.RawMessage) error {
		if c.output != "ndjson" {
			return nil
		}
		_, err := fmt.Fprintf(c.out, "%s\n", ev)
		return err
	})
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, context.Cause(ctx), "run %s goes on at the workers", id).
			WithHint("follow it: loki-temporal --resume %s; stop it: loki-temporal --cancel %s", id, id)
	}
	if err != nil {
		return err
	}
	switch {
	case s.Status == run.Suspended && len(s.Waits) == 0:
		q := s.Others[0]
		return fault.New(fault.Suspended, "run %s: node %q %s", id, q.Node, q.Text).
			WithHint("send it: loki-temporal --signal %s '%s=JSON'; then follow the run: loki-temporal --resume %s", id, q.Signal, id)
	case s.Status == run.Suspended:
		return waits(id, s)
	case s.Failure != nil && s.Status != run.Done:
		f := *s.Failure
		if f.Hint != "" {
			f.Hint += "\n"
		}
		if !strings.Contains(f.Hint, "--resume") {
			f.Hint += "go on where it stopped: loki-temporal --resume " + id
		}
		return f.Err()
	case c.output == "text":
		_, err = fmt.Fprintln(c.out, s.Output)
	case c.output == "json":
		err = c.json(id, s)
	}
	if err == nil && s.Failure != nil {
		err = s.Failure.Err()
	}
	return err
}

// waits returns the error of a run that waits for answers.
func waits(id string, s driver.Status) error {
	var b strings.Builder
	for _, q := range s.Waits {
		fmt.Fprintf(&b, "\n  %s: %s", q.ID, q.Text)
		if len(q.Options) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(q.Options, ", "))
		}
	}
	err := fault.New(fault.Suspended, "run %s waits for an answer:%s", id, b.String())
	if len(s.Waits) == 1 {
		return err.WithHint("answer it: loki-temporal --resume %s --answer TEXT", id)
	}
	return err.WithHint("answer one of them: loki-temporal --resume %s --answer %s=TEXT, or all with --answers FILE, a YAML file with a line for each", id, s.Waits[0].ID)
}

// status shows how a run stands.
func (c *command) status(ctx context.Context) error {
	s, err := c.runs.Status(ctx, c.show, driver.Request{After: map[string]int{"text": -1}[c.output], State: c.state})
	if err != nil {
		return err
	}
	if c.output != "text" {
		return c.json(c.show, s)
	}
	if c.state {
		_, err := fmt.Fprintf(c.out, "%s\n", s.State.AppendJSON(nil))
		return err
	}
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(c.out, "%-9s %s\n", name, text)
		}
	}
	row("run", c.show)
	row("agent", s.Agent)
	row("status", string(s.Status))
	row("used", fmt.Sprintf("%d super-steps, %d tokens", s.Step, s.Usage.Total()))
	row("next", strings.Join(s.Frontier, ", "))
	if !s.Until.IsZero() {
		row("until", s.Until.Local().Format(time.DateTime))
	}
	row("output", s.Output)
	if s.Failure != nil {
		row("error", s.Failure.Message)
	}
	for _, q := range s.Others {
		row("waits", q.ID+": "+q.Text)
	}
	for _, q := range s.Waits {
		row("question", q.ID+": "+q.Text)
		row("", strings.Join(q.Options, ", "))
	}
	return nil
}

// json prints the status of a run for programs.
func (c *command) json(id string, s driver.Status) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		ID string `json:"id"`
		driver.Status
	}{id, s})
}
