package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/awake"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/builtin/ignore"
)

const (
	readyPatience = 30 * time.Second
	// look is how long a start without a pattern waits for a command that fails at once.
	look = time.Second
	// grace is how long a job has to end after SIGTERM.
	grace = 5 * time.Second
	// logsStay is how long logs are kept.
	logsStay = 7 * 24 * time.Hour
)

// Options configure a [List].
type Options struct {
	config.Jobs
	Dir     string // of the logs
	Secrets *redact.Secrets
	Known   *Registry // knows the list as long as it has jobs; nil for none

	// Ignored returns the ignore files of a workspace, for the keepers of jobs; see [sandbox.Options]. Nil means that jobs cannot be kept.
	Ignored func(workspace string) ignore.Files
}

// List is the jobs of a conversation. It may be used from several goroutines.
type List struct {
	o Options

	mu   sync.Mutex // guards what follows
	jobs []*job     // in the order of their start
	at   string     // id of the session that has the conversation; "" for none

	news chan struct{} // has an element when there is something new to be told
}

// New returns a list without jobs; nil if there can be none.
func New(o *Options) *List {
	if o == nil || o.Max == 0 {
		return nil
	}
	return &List{o: *o, news: make(chan struct{}, 1)}
}

// States of jobs.
const (
	Running = "running"
	Exited  = "exited"
	Killed  = "killed"
	Lost    = "lost" // its program has ended, and the job with it
	Kept    = "kept" // it continues without its conversation
)

// job is one job.
type job struct {
	id      string
	run     string // "" if that is not recorded
	session string // "" for none
	command string
	level   sandbox.Level
	ports   []int
	began   time.Time
	log     *log
	box     *sandbox.Box // nil if it is not confined, or kept
	start   builtin.Job

	gone      <-chan struct{} // closed when its processes have ended
	terminate func()          // ends it, and returns when gone is closed
	outcome   func() error    // how it ended, as [process.Service] has it
	moved     func(int64)     // see log.moved
	leave     func()          // ends the watch of a job that is kept; nil for others

	ended chan struct{} // closed when what follows does not change anymore
	took  time.Duration
	found string // what was noticed of files that it made; "" for nothing
	exit  *int   // nil if it was killed

	mu     sync.Mutex
	reason string // why it is killed; guarded by mu
	told   bool   // the user was told that it ended; guarded by mu of the list
	noted  bool   // likewise the model
	warned bool   // the user was told that the log could not be written; guarded by mu of the list
}

// Start implements [builtin.Jobs].
func (l *List) Start(ctx context.Context, call tool.Call, start builtin.Job) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	j := &job{id: newID(), run: call.RunID, command: start.Text, level: call.Sandbox.Level, ports: start.Ports, start: start, ended: make(chan struct{})}
	if start.Keep {
		return l.startKept(ctx, j)
	}
	return l.launch(ctx, j, func() error {
		return event.FromContext(ctx).Emit(ctx, event.JobStarted{ID: j.id, Command: j.command, Level: string(j.level), Ports: j.ports})
	})
}

// launch starts a job in this process, calls begun, and returns what the model reads about it.
func (l *List) launch(ctx context.Context, j *job, begun func() error) (tool.Result, error) {
	start := j.start
	j.box = start.Box
	unwatch := j.watch() // from before it starts, as it may make files at once
	l.mu.Lock()
	err := l.begin(j, start)
	l.mu.Unlock()
	if err != nil {
		unwatch()
		return tool.Result{}, err
	}
	if err := begun(); err != nil {
		unwatch()
		return tool.Result{}, err
	}
	patience := look
	if start.Ready != nil {
		patience = readyPatience
	}
	waiting, cancel := awake.WithTimeoutCause(ctx, patience, nil)
	defer cancel()
	found := false
	if start.Ready != nil {
		found = j.log.wait(waiting, 0, start.Ready)
	} else {
		select {
		case <-j.ended:
		case <-waiting.Done():
		}
	}
	noticed := unwatch()
	if ctx.Err() != nil { // no model would know its id
		j.end("its start was interrupted")
		return tool.Result{}, ctx.Err()
	}
	const shown = 8 << 10
	r := l.report(j, j.log.last(shown))
	r.Job = j.id
	if start.Ready != nil {
		r.Ready = &found
	}
	res, err := r.result()
	res.Refused = noticed
	if j.box != nil && r.Status != Running {
		res.Refused = append(res.Refused, j.box.Refusals(r.Output, r.failed())...)
	}
	return res, err
}

// room returns an error if no more jobs can be started. The list is locked.
func (l *List) room() error {
	running := 0
	for _, other := range l.jobs {
		if other.running() {
			running++
		}
	}
	if running >= l.o.Max {
		return fmt.Errorf("%s run already, which is the most at a time: end one with job__kill first", text.Count(running, "job"))
	}
	if err := os.MkdirAll(l.o.Dir, 0o700); err != nil {
		return fmt.Errorf("the log of the job: %w", err)
	}
	l.removeOld()
	return nil
}

// begin starts a job and the goroutines around it. The list is locked.
func (l *List) begin(j *job, start builtin.Job) (err error) {
	if err := l.room(); err != nil {
		return err
	}
	var listeners []net.Listener
	shut := func() {
		for _, at := range listeners {
			at.Close()
		}
	}
	for _, port := range j.ports {
		at, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			shut()
			return fmt.Errorf("port %d of this computer cannot be had (%w): choose another one, also for the command", port, errors.Unwrap(err))
		}
		listeners = append(listeners, at)
	}
	path := filepath.Join(l.o.Dir, j.id+".log")
	if j.log, err = newLog(path, l.o.LogBytes, l.o.Secrets, l.renew); err != nil {
		shut()
		return fmt.Errorf("the log of the job: %w", err)
	}
	j.log.moved = j.moved
	start.Program.Echo = j.log
	service, err := process.Start(start.Program)
	if err != nil {
		shut()
		j.log.release()
		os.Remove(path)
		return err
	}
	j.gone, j.terminate, j.outcome = service.Done(), func() { service.Terminate(grace) }, service.Outcome
	j.began, j.session = time.Now(), l.at
	l.jobs = append(l.jobs, j)
	l.o.Known.keep(l, true)
	var relays sync.WaitGroup
	for i, at := range listeners {
		relays.Go(func() { sandbox.Relay(at, j.dialer(j.ports[i])) }) // ends with the job
	}
	old := awake.AfterFunc(l.o.MaxAge, func() { j.end("it ran for " + l.o.MaxAge.String() + ", the longest that a job may") })
	go func() { // ends with the job
		<-j.gone
		old.Stop()
		shut()
		relays.Wait()
		j.log.finish()
		j.conclude()
		close(j.ended)
		l.renew()
	}()
	return nil
}

// renew says that there is something new to be told.
func (l *List) renew() {
	select {
	case l.news <- struct{}{}:
	default: // it was said already
	}
}

// News has an element when a job has ended, or its log could not be written, and [List.Tell] has something to report.
func (l *List) News() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.news
}

// dialer returns what connects to a port of the job.
func (j *job) dialer(port int) sandbox.Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		if j.leave != nil { // its keeper relays connections
			return new(net.Dialer).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
		return j.box.Dial(ctx, port)
	}
}

// conclude finds out how the job ended.
func (j *job) conclude() {
	j.took = time.Since(j.began)
	if j.box != nil {
		if _, noticed := sandbox.Apart(j.box.Refusals("", false)); len(noticed) > 0 {
			j.found = sandbox.Refusals(noticed)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	exit, failed := errors.AsType[*process.ExitError](j.outcome())
	switch {
	case j.reason != "":
	case failed && exit.Signal != "":
		j.reason = "by " + exit.Signal
	case failed:
		j.exit = &exit.Code
	default:
		j.exit = new(int)
	}
}

// end ends the job, if it runs, and returns when it has ended.
func (j *job) end(reason string) {
	if j.running() {
		j.mu.Lock()
		j.reason = cmp.Or(j.reason, reason)
		j.mu.Unlock()
	}
	j.terminate()
	<-j.ended
}

func (j *job) running() bool {
	select {
	case <-j.gone:
		return false
	default:
		return true
	}
}

// status returns the state of the job.
func (j *job) status() string {
	switch {
	case j.running():
		return Running
	default:
		<-j.ended
		if j.exit != nil {
			return Exited
		}
		return Killed
	}
}

// watch watches what the job makes until unwatch is called, which returns notices of it.
func (j *job) watch() (unwatch func() []sandbox.Refusal) {
	if j.box != nil && j.level.Covers(sandbox.Write) {
		if end, err := j.box.Watch(); err == nil {
			return end
		}
	}
	return func() []sandbox.Refusal { return nil }
}

// removeOld removes logs and records that were not written to for longer than they are kept.
func (l *List) removeOld() {
	entries, _ := os.ReadDir(l.o.Dir) // without it there are none
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) != lockExt && time.Since(info.ModTime()) > logsStay && !isKept(l.o.Dir, id) {
			os.Remove(filepath.Join(l.o.Dir, e.Name()))
		}
	}
}

const idPrefix = "job-"

// idForm is how ids look.
var idForm = text.Regexp(`^` + idPrefix + `[0-9a-f]{8}$`)

func newID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return idPrefix + hex.EncodeToString(b[:])
}

// mostReached is how many ports a command reaches.
const mostReached = 64

// Reach implements [builtin.Jobs].
func (l *List) Reach() map[int]sandbox.Dialer {
	reach := make(map[int]sandbox.Dialer)
	for _, j := range l.all() {
		for _, port := range j.ports {
			if len(reach) < mostReached && j.running() {
				reach[port] = j.dialer(port)
			}
		}
	}
	return reach
}

func (l *List) all() []*job {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.jobs)
}

// find returns the job with an id, nil for one that was started by a program that has ended.
func (l *List) find(id string) (*job, error) {
	all := l.all()
	if i := slices.IndexFunc(all, func(j *job) bool { return j.id == id }); i >= 0 {
		return all[i], nil
	}
	if idForm().MatchString(id) {
		return l.adopt(id), nil
	}
	return nil, fault.New(fault.NotFound, "there is no job %q", id)
}

// TakeEnded returns the jobs that have ended since the last call.
func (l *List) TakeEnded() []event.JobEnded {
	return l.markEnded(func(j *job) *bool { return &j.told })
}

// markEnded returns the jobs that have ended and do not have a mark, which they get.
func (l *List) markEnded(mark func(j *job) *bool) (ended []event.JobEnded) {
	for _, j := range l.all() {
		if j.running() {
			continue
		}
		<-j.ended
		l.mu.Lock()
		marked := mark(j)
		isNew := !*marked
		*marked = true
		l.mu.Unlock()
		if isNew {
			ended = append(ended, event.JobEnded{ID: j.id, Command: j.command, Status: j.status(), Exit: j.exit, Reason: j.reason, Notice: j.found})
		}
	}
	return ended
}

// Close ends all jobs, and returns the ones that have ended since the last call of [List.TakeEnded]. The list is empty then.
func (l *List) Close(reason string) []event.JobEnded {
	if l == nil {
		return nil
	}
	var ending sync.WaitGroup
	all := l.all()
	var staying []event.JobEnded
	for _, j := range all {
		if j.leave != nil && j.running() {
			staying = append(staying, event.JobEnded{ID: j.id, Command: j.command, Status: Kept, Reason: "it continues; to end it: loki --kill-job " + j.id})
			l.mu.Lock()
			j.told, j.noted = true, true
			l.mu.Unlock()
			ending.Go(j.leave)
			continue
		}
		ending.Go(func() { j.end(reason) })
	}
	ending.Wait()
	ended := append(l.TakeEnded(), staying...)
	l.mu.Lock()
	l.jobs = slices.DeleteFunc(l.jobs, func(j *job) bool { return slices.Contains(all, j) })
	l.at = "" // who continues the session has its jobs again
	l.o.Known.keep(l, len(l.jobs) > 0)
	l.mu.Unlock()
	for _, j := range all {
		j.log.release()
	}
	return ended
}

// Equip returns tools of which execute_command starts jobs, with the tools to use them. A set without that tool stays as it is.
// The session, "" for none, has the conversation.
func (l *List) Equip(set tool.Set, session string) (tool.Set, error) {
	if l == nil {
		return set, nil
	}
	l.Continue(session)
	var tools []tool.Tool
	changed := false
	for _, t := range set.All() {
		with := builtin.InBackground(t, l)
		changed = changed || with != t
		tools = append(tools, with)
	}
	if !changed {
		return set, nil
	}
	with, err := tool.NewSet(tools...)
	if err != nil {
		return set, err
	}
	return with.With(l.Tools()...)
}

// Notes is Tell, and returns a line for the model about each job that has ended since the last call.
func (l *List) Notes(ctx context.Context) (lines []string) {
	l.Tell(ctx, event.FromContext(ctx))
	for _, e := range l.markEnded(func(j *job) *bool { return &j.noted }) {
		lines = append(lines, "[The job "+e.String()+"; job__output has what it printed]")
	}
	return lines
}

// Tell reports the jobs that have ended since the last call, and those whose logs could not be written. What cannot be shown is not.
func (l *List) Tell(ctx context.Context, events event.Scope) {
	for _, j := range l.all() {
		err := j.log.trouble()
		l.mu.Lock()
		isNew := err != nil && !j.warned
		j.warned = j.warned || isNew
		l.mu.Unlock()
		if isNew {
			_ = events.Emit(ctx, event.Warning{Text: fmt.Sprintf("the log of %s cannot be written (%v): the job continues, and what it prints meanwhile is not kept", j.id, err)})
		}
	}
	Tell(ctx, events, l.TakeEnded())
}

// Tell reports jobs that have ended.
func Tell(ctx context.Context, events event.Scope, ended []event.JobEnded) {
	for _, e := range ended {
		_ = events.Emit(ctx, e)
	}
}

// Kill ends a job.
func (l *List) Kill(id, reason string) error {
	j, err := l.find(id)
	if err == nil && j == nil {
		err = fault.New(fault.NotFound, "there is no job %q in this conversation", id)
	}
	if err == nil {
		j.end(reason)
	}
	return err
}

// Info is what a list shows of a job.
type Info struct {
	ID      string        `json:"id"`
	Command string        `json:"command"`
	Status  string        `json:"status"`
	Exit    *int          `json:"exit,omitempty"`
	Level   string        `json:"level,omitempty"`
	Ports   []int         `json:"ports,omitempty"`
	Ran     time.Duration `json:"-"`
	Bytes   int64         `json:"bytes"` // that it printed
}

// All lists the jobs, also ended ones.
func (l *List) All() []Info { return infos(l.all()) }

func infos(jobs []*job) []Info {
	slices.SortStableFunc(jobs, func(a, b *job) int { return a.began.Compare(b.began) })
	list := []Info{}
	for _, j := range jobs {
		list = append(list, j.info())
	}
	return list
}

func (j *job) info() Info {
	i := Info{ID: j.id, Command: j.log.secrets.Text(j.command), Status: j.status(), Level: string(j.level), Ports: j.ports, Ran: time.Since(j.began)}
	if i.Status != Running {
		i.Exit, i.Ran = j.exit, j.took
	}
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	i.Bytes = j.log.end
	return i
}

// Output returns the end of what a job printed.
func (l *List) Output(id string) (string, error) {
	j, err := l.find(id)
	if err == nil && j == nil {
		err = fault.New(fault.NotFound, "there is no job %q in this conversation", id)
	}
	if err != nil {
		return "", err
	}
	return j.log.last(window).Text, nil
}

var _ builtin.Jobs = (*List)(nil)
