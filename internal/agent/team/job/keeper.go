package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/event"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/tool/builtin"
	"loki/internal/tool/builtin/ignore"
)

// keeperArgument is the argument of the process that keeps a job: its parent from the start, which has its box and writes its log.
const keeperArgument = "--keeper-of-a-job"

// order is what a keeper gets on its standard input.
type order struct {
	Record  Record
	Options config.Jobs
	Dir     string // of the logs
	Secrets map[string]string
	Path    string // of the program
	Args    []string
	Workdir string
	Env     []string
	Ready   string        // "" for no pattern
	Box     *sandbox.Copy // nil if the job is not confined
	Ignored ignore.Files
}

// reply is what a keeper prints: once when the job runs, or cannot, and once when the call that starts it returns.
type reply struct {
	Error   string            `json:",omitempty"`
	Output  string            `json:",omitempty"`
	Refused []sandbox.Refusal `json:",omitempty"`
}

// Record is what the state directory has of a job that is kept, beside its log.
type Record struct {
	ID      string        `json:"id"`
	Command string        `json:"command"`
	Dir     string        `json:"dir"` // in which it was started
	Level   sandbox.Level `json:"level,omitempty"`
	Ports   []int         `json:"ports,omitempty"`
	Session string        `json:"session,omitempty"`
	Run     string        `json:"run,omitempty"`
	Began   time.Time     `json:"began"`
	Log     string        `json:"log"` // its path
	Keeper  int           `json:"keeper"`
	Base    int64         `json:"base"` // position of the first byte of the log, -1 while that changes

	Status string        `json:"status"`
	Exit   *int          `json:"exit,omitempty"`
	Reason string        `json:"reason,omitempty"`
	Notice string        `json:"notice,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
}

// The files beside a log.
const (
	recordExt = ".json"
	lockExt   = ".lock" // the keeper holds it as long as it lives
)

// isKept reports whether the keeper of a job lives.
func isKept(dir, id string) bool {
	held, err := atomicfile.HeldElseRemoved(filepath.Join(dir, id+lockExt))
	return held || err != nil
}

// readRecord returns the record of a job. One whose keeper was killed is lost.
func readRecord(dir, id string) (r Record, err error) {
	lives := isKept(dir, id) // before the record, which it writes last
	data, err := os.ReadFile(filepath.Join(dir, id+recordExt))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Status == Running && !lives {
		r.Status, r.Reason = Lost, "its keeper was killed"
	}
	return r, err
}

// KeptJobs lists the jobs in a directory that were kept, the oldest first.
func KeptJobs(dir string) []Record {
	list := []Record{}
	for _, path := range atomicfile.Glob(dir, idPrefix+"*"+recordExt) {
		name := filepath.Base(path)
		if r, err := readRecord(dir, name[:len(name)-len(recordExt)]); err == nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Began.Compare(b.Began) })
	return list
}

// KillKept ends a job that is kept, and returns when it has ended.
func KillKept(ctx context.Context, dir, id string) (Record, error) {
	r, err := Record{}, error(nil)
	if idForm().MatchString(id) {
		r, err = readRecord(dir, id)
	}
	switch {
	case r.ID == "" || err != nil:
		return r, fault.New(fault.NotFound, "there is no kept job %q", id).WithHint("loki --list jobs shows them")
	case r.Status != Running:
		return r, fault.New(fault.Failure, "%s has ended already", id)
	}
	if err := interrupt(r.Keeper); err != nil {
		return r, fault.Wrap(fault.Failure, err, "the keeper of %s, process %d, cannot be told to end it", id, r.Keeper)
	}
	for r.Status == Running && ctx.Err() == nil {
		_ = retry.Sleep(ctx, lookEvery)
		if r, err = readRecord(dir, id); err != nil {
			return r, err
		}
	}
	return r, ctx.Err()
}

// lookEvery is the time between two looks at a file that another process writes.
const lookEvery = 100 * time.Millisecond

// ServeKeeper is the process that keeps a job. It reports whether args, without the name of the program, are those of one, and then
// returns when the job has ended.
func ServeKeeper(args []string) bool {
	if len(args) != 1 || args[0] != keeperArgument {
		return false
	}
	var o order
	err := json.NewDecoder(os.Stdin).Decode(&o)
	if err == nil {
		err = o.keep()
	}
	if err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(reply{Error: err.Error()})
	}
	return true
}

// keep runs the job of an order.
func (o *order) keep() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGPIPE) // the terminal may go, and who started it; the job has the usual actions
	defer signal.Stop(ignored)
	path := filepath.Join(o.Dir, o.Record.ID)
	unlock, err := atomicfile.Lock(ctx, path+lockExt)
	if err != nil {
		return err
	}
	defer unlock()
	var secrets redact.Secrets
	for name, secret := range o.Secrets {
		secrets.Add(name, secret)
	}
	start := builtin.Job{Text: o.Record.Command, Ports: o.Record.Ports}
	start.Program.Path, start.Program.Args, start.Program.Dir, start.Program.Env = o.Path, o.Args, o.Workdir, o.Env
	if o.Ready != "" {
		if start.Ready, err = regexp.Compile(o.Ready); err != nil {
			return err
		}
	}
	if o.Box != nil {
		o.Box.Options.Getenv = os.Getenv
		o.Box.Options.Ignored = o.Ignored.ForPrograms
		start.Box = sandbox.New(o.Box.Options).Box(o.Box.Declared, o.Box.Needs)
		start.Program.Confinement = start.Box
	}
	var mu sync.Mutex
	write := func(change func(r *Record)) error {
		mu.Lock()
		defer mu.Unlock()
		change(&o.Record)
		data, err := json.Marshal(o.Record)
		if err == nil {
			err = atomicfile.Write(path+recordExt, append(data, '\n'), atomicfile.Options{Mode: atomicfile.Private})
		}
		return err
	}
	o.Options.Max = 1
	list := New(&Options{Jobs: o.Options, Dir: o.Dir, Secrets: &secrets})
	r := &o.Record
	j := &job{id: r.ID, command: r.Command, level: r.Level, ports: r.Ports, start: start, ended: make(chan struct{})}
	j.moved = func(base int64) { _ = write(func(r *Record) { r.Base = base }) } // a full disk: the next one tells
	out := json.NewEncoder(os.Stdout)
	res, err := list.launch(ctx, j, func() error {
		err := write(func(r *Record) { r.Keeper, r.Began, r.Status = os.Getpid(), j.began, Running })
		if err == nil {
			err = out.Encode(reply{})
		}
		if err != nil {
			j.end("it cannot be kept")
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err == nil {
		_ = out.Encode(reply{Output: res.Output, Refused: res.Refused}) // who started it may be gone
		os.Stdout.Close()
	}
	select {
	case <-j.ended:
	case <-ctx.Done():
		j.end("it was told to end")
	}
	return write(func(r *Record) {
		r.Status, r.Exit, r.Reason, r.Notice, r.Took = j.status(), j.exit, j.reason, j.found, j.took
	})
}

// Keeps implements [builtin.Jobs].
func (l *List) Keeps() bool { return l.o.Ignored != nil && canDetach }

// roomToKeep returns an error if no more jobs can be kept.
func (l *List) roomToKeep() error {
	kept := slices.DeleteFunc(KeptJobs(l.o.Dir), func(r Record) bool { return r.Status != Running })
	if len(kept) >= l.o.Max {
		return errors.New("as many jobs are kept as may be: the user ends one with loki --kill-job ID, and sees them with loki --list jobs")
	}
	return nil
}

// startKept starts a job in a process of its own, which outlives this one.
func (l *List) startKept(ctx context.Context, j *job) (tool.Result, error) {
	if !l.Keeps() {
		return tool.Result{}, errors.New("no job outlives this conversation")
	}
	l.mu.Lock()
	err, at := l.room(), l.at
	l.mu.Unlock()
	if err = cmp.Or(err, l.roomToKeep()); err != nil {
		return tool.Result{}, err
	}
	p, dir := j.start.Program, ""
	if dir, err = os.Getwd(); err != nil {
		return tool.Result{}, err
	}
	if p.Dir != "" {
		dir = p.Dir
	}
	o := order{
		Options: l.o.Jobs, Dir: l.o.Dir, Secrets: l.o.Secrets.All(), Path: p.Path, Args: p.Args, Workdir: dir, Env: p.Env,
		Record: Record{ID: j.id, Command: l.o.Secrets.Text(j.command), Dir: dir, Level: j.level, Ports: j.ports, Session: at, Run: j.run, Log: filepath.Join(l.o.Dir, j.id+".log")},
	}
	if j.start.Ready != nil {
		o.Ready = j.start.Ready.String()
	}
	if b := j.start.Box; b != nil {
		o.Box = b.Copy()
		o.Ignored = l.o.Ignored(o.Box.Options.Workspace)
	}
	replies, stop, err := o.give(ctx)
	defer stop()
	if err != nil {
		return tool.Result{}, err
	}
	r, err := readRecord(l.o.Dir, j.id)
	if err == nil {
		err = l.follow(j, r)
	}
	if err != nil {
		return tool.Result{}, err
	}
	if err := event.FromContext(ctx).Emit(ctx, event.JobStarted{ID: j.id, Command: j.command, Level: string(j.level), Ports: j.ports}); err != nil {
		j.end("its start could not be recorded")
		return tool.Result{}, err
	}
	result, err := next(replies)
	if ctx.Err() != nil {
		j.end("its start was interrupted")
		return tool.Result{}, ctx.Err()
	}
	if !j.running() { // which the result says
		<-j.ended
		l.mu.Lock()
		j.noted = true
		l.mu.Unlock()
	}
	return tool.Result{Output: result.Output, Refused: result.Refused}, err
}

// give starts the keeper of an order, and returns what it prints after the job was started. If ctx ends before stop is called, so does the job.
func (o *order) give(ctx context.Context) (replies *json.Decoder, stop func(), err error) {
	stop = func() {}
	self, err := os.Executable()
	if err != nil {
		return nil, stop, err
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, stop, err
	}
	cmd := &exec.Cmd{Path: self, Args: []string{os.Args[0], keeperArgument}, Env: os.Environ(), Dir: "/", Stdin: bytes.NewReader(data)}
	detach(cmd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, stop, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = interrupt(cmd.Process.Pid) })
	ours, theirs := io.Pipe()
	stop = func() {
		unwatch()
		ours.Close() // what comes later is not read
	}
	go func() { // ends with the keeper, or with this process
		_, err := io.Copy(theirs, out)
		_ = theirs.CloseWithError(err)
		_ = cmd.Wait()
	}()
	replies = json.NewDecoder(ours)
	_, err = next(replies)
	return replies, stop, err
}

// next returns the next reply of a keeper.
func next(replies *json.Decoder) (r reply, err error) {
	err = replies.Decode(&r)
	switch {
	case r.Error != "":
		return r, errors.New(r.Error)
	case err != nil:
		return r, errors.New("the process that keeps the job has ended early")
	}
	return r, nil
}

// Continue has the list be that of a session, "" for none, with the jobs that an earlier program has kept for it and that still run.
func (l *List) Continue(session string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	isNew := l.at != session
	l.at = session
	l.mu.Unlock()
	if !isNew || session == "" || !l.Keeps() {
		return
	}
	for _, r := range KeptJobs(l.o.Dir) {
		if r.Session == session && r.Status == Running {
			_, _ = l.find(r.ID) // adopts it unless it is there
		}
	}
}

// adopt returns a job of the session that was kept by a program which has ended; nil if it is none.
func (l *List) adopt(id string) *job {
	l.mu.Lock()
	at := l.at
	l.mu.Unlock()
	r, err := readRecord(l.o.Dir, id)
	if err != nil || r.Session == "" || r.Session != at {
		return nil
	}
	j := &job{id: id, run: r.Run, command: r.Command, level: r.Level, ports: r.Ports, ended: make(chan struct{}), noted: r.Status != Running, told: r.Status != Running}
	if l.follow(j, r) != nil {
		return nil
	}
	return j
}

// follow has a job of the list be what its keeper writes about it, until leave is called.
func (l *List) follow(j *job, r Record) error {
	f, err := os.Open(r.Log)
	if err != nil {
		return err
	}
	gone, left, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	j.began, j.session, j.gone = r.Began, r.Session, gone
	j.terminate = func() {
		_ = interrupt(r.Keeper) // else it has ended
		<-over
	}
	j.leave = sync.OnceFunc(func() {
		close(left)
		<-over
	})
	j.log = &log{secrets: l.o.Secrets, max: l.o.LogBytes, file: f, changed: make(chan struct{})}
	look := func() (Record, bool) {
		now, err := readRecord(l.o.Dir, j.id)
		info, statErr := f.Stat()
		if err != nil || statErr != nil || now.Base < 0 {
			return Record{Status: Running}, now.Base < 0
		}
		moved := now.Base != j.log.base
		j.log.base, j.log.end = now.Base, now.Base+info.Size()
		return now, moved
	}
	j.log.refresh = func() bool {
		_, moved := look()
		return moved
	}
	j.log.refresh()
	l.mu.Lock()
	l.jobs = append(l.jobs, j)
	l.o.Known.keep(l, true)
	l.mu.Unlock()
	go func() { // ends with the job, or when the list leaves it
		defer close(over)
		for {
			j.log.mu.Lock()
			before := j.log.end
			now, _ := look()
			ended := now.Status != Running
			if j.log.done = ended; ended || j.log.end != before {
				j.log.notify()
			}
			j.log.mu.Unlock()
			if ended {
				j.mu.Lock()
				if j.exit = now.Exit; now.Exit == nil && j.reason == "" {
					j.reason = now.Reason
				}
				j.mu.Unlock()
				j.found, j.took = now.Notice, now.Took
				close(gone)
				close(j.ended)
				l.renew()
				return
			}
			select {
			case <-left:
				return
			case <-time.After(lookEvery):
			}
		}
	}()
	return nil
}

// Keep starts a job again as one that is kept, and returns its id. The user has consented.
func (l *List) Keep(ctx context.Context, id string) (string, error) {
	j, err := l.find(id)
	switch {
	case err == nil && j == nil:
		err = fault.New(fault.NotFound, "there is no job %q in this conversation", id)
	case err == nil && !l.Keeps():
		err = fault.New(fault.Usage, "no job outlives Loki here")
	case err == nil && j.leave != nil:
		err = fault.New(fault.Usage, "%s is kept already", id)
	case err == nil && !j.running():
		err = fault.New(fault.Usage, "%s has ended", id)
	case err == nil:
		err = l.roomToKeep() // before the job ends
	}
	if err != nil {
		return "", err
	}
	again := &job{id: newID(), run: j.run, command: j.command, level: j.level, ports: j.ports, start: j.start, ended: make(chan struct{})}
	j.end("it was started again as " + again.id + ", which outlives Loki")
	_, err = l.startKept(ctx, again)
	return again.id, err
}
