// Package audit keeps the record of who did what on a server: one JSON line for each action.
//
// An [Entry] goes to a [Log], which never makes its caller wait: a goroutine of its own writes the lines to a [Sink].
// While that cannot take them they wait, and what does not fit into the queue is lost and counted.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// The actions.
const (
	SessionCreate = "session_create"
	SessionRead   = "session_read"
	SessionUpdate = "session_update"
	SessionDelete = "session_delete"
	RunStart      = "run_start"
	RunAnswer     = "run_answer"
	RunSignal     = "run_signal"
	RunResume     = "run_resume"
	RunCancel     = "run_cancel"
	RunFork       = "run_fork"
	RunDelete     = "run_delete"
	RunBulk       = "run_bulk" // many runs are resumed, canceled or deleted

	ScheduleChange = "schedule_change"

	AgentActivate = "agent_activate" // an agent is asked, or becomes that of a session
	Completion    = "completion"     // a model or a role is asked
	ToolExecute   = "tool_execute"
	RAGRebuild    = "rag_rebuild"
	MemoryUpdate  = "memory_update" // a fact is added, changed, forgotten or accepted
	MCPReload     = "mcp_reload"
	ConfigReload  = "config_reload"
	AuthFailure   = "auth_failure"
	LimitReached  = "rate_limit_rejection"
	linesLost     = "audit_lines_lost"
)

// Result says how an action ended.
type Result string

// The results.
const (
	Success Result = "success"
	Denied  Result = "denied" // the request was refused
	Failure Result = "error"  // it failed
)

// Entry is one action. Members without a value are empty in the line, so that all lines have the same ones.
type Entry struct {
	Time      time.Time      `json:"timestamp"` // set by [Log.Add]
	RequestID string         `json:"request_id"`
	Subject   string         `json:"subject"`
	KeyID     string         `json:"key_id"`
	Action    string         `json:"action"`
	Target    string         `json:"target"` // kind and name, such as session:ID
	Result    Result         `json:"result"`
	Reason    string         `json:"reason"` // code of the error
	Details   map[string]any `json:"details,omitempty"`
}

// Sink takes lines. One goroutine at a time uses it.
type Sink interface {
	// Write keeps whole lines and returns how many bytes of p are kept. It may take long.
	Write(p []byte) (n int, err error)
	Close() error
}

// Options configure Start.
type Options struct {
	Sink Sink                     // required; the log closes it
	Hide func(text string) string // returns a text without secrets; nil hides none
	Log  *slog.Logger             // for failures of the sink; nil for none
}

// The bounds of a log.
const (
	queueLength = 4096
	batchSize   = 64 << 10             // bytes that are written at once
	gather      = 5 * time.Millisecond // how long a line waits for others to be written with
	again       = time.Second
	stall       = 10 * time.Second // after which a sink that does not return counts as failed
)

// Log is a record of actions. Its methods may be called from several goroutines.
type Log struct {
	o       Options
	queue   chan []byte
	replace chan Sink
	closing chan struct{}
	done    chan struct{}
	once    sync.Once

	lost    atomic.Int64 // lines, in all
	failure atomic.Pointer[error]
	writing atomic.Pointer[time.Time] // since when the sink writes; nil if it does not
	sink    Sink                      // owned by the goroutine of the log
	said    int64                     // of the lost lines, the ones that a line has reported; owned by the goroutine
}

// Start returns a log whose goroutine ends with [Log.Close].
func Start(o Options) *Log {
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		o: o, sink: o.Sink, queue: make(chan []byte, queueLength), replace: make(chan Sink), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go l.run()
	return l
}

// Add adds a line, or counts it as lost if too many wait. It does not block.
func (l *Log) Add(e Entry) {
	line, err := l.line(e)
	if err != nil {
		l.lost.Add(1)
		l.o.Log.Error("an audit line cannot be encoded", "action", e.Action, "error", err)
		return
	}
	select {
	case l.queue <- line:
	default:
		l.lost.Add(1)
	}
}

func (l *Log) line(e Entry) ([]byte, error) {
	e.Time = time.Now().UTC()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return []byte(l.o.Hide(b.String())), nil
}

// LostLines returns how many lines were lost so far.
func (l *Log) LostLines() int64 { return l.lost.Load() }

// Err returns why lines are not kept at the moment, nil if they are.
func (l *Log) Err() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	if since := l.writing.Load(); since != nil && time.Since(*since) > stall {
		return fmt.Errorf("the sink has not taken a line for %v", time.Since(*since).Round(time.Second))
	}
	return nil
}

// Replace has the log write to another sink, once the present one returns, and closes that. It returns without waiting if
// the log is closed, or ctx ends; next is closed then.
func (l *Log) Replace(ctx context.Context, next Sink) error {
	select {
	case l.replace <- next:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), next.Close())
	case <-l.done:
		return next.Close()
	}
}

// Close writes what waits and closes the sink. It gives up when ctx ends. Nothing may be added any more.
func (l *Log) Close(ctx context.Context) error {
	l.once.Do(func() { close(l.closing) })
	select {
	case <-l.done:
	case <-ctx.Done():
		return errors.New("the audit sink does not take the last lines")
	}
	if lost := l.LostLines(); lost > 0 {
		return fmt.Errorf("%d audit lines were lost: %w", lost, l.Err())
	}
	return nil
}

// run writes lines until the log is closed and none waits.
func (l *Log) run() {
	defer close(l.done)
	defer func() { _ = l.sink.Close() }()
	for {
		select {
		case line := <-l.queue:
			l.pause()
			l.keep(l.batch(line))
		case next := <-l.replace:
			l.use(next)
		case <-l.closing:
			for len(l.queue) > 0 {
				l.keep(l.batch(<-l.queue))
			}
			l.report()
			return
		}
	}
}

// pause lets more lines come.
func (l *Log) pause() {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.closing:
	}
}

// batch returns a line with the ones that already follow it.
func (l *Log) batch(line []byte) []byte {
	for len(line) < batchSize {
		select {
		case next := <-l.queue:
			line = append(line, next...)
			continue
		default:
		}
		break
	}
	return line
}

func (l *Log) use(next Sink) {
	_ = l.sink.Close()
	l.sink = next
}

// keep writes lines, again and again until the sink takes them or the log is closed.
func (l *Log) keep(lines []byte) {
	for {
		lines = lines[l.write(lines):]
		if len(lines) == 0 {
			l.report()
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case next := <-l.replace:
			l.use(next)
		case <-l.closing:
			timer.Stop()
			lines = lines[l.write(lines):]
			l.lost.Add(int64(bytes.Count(lines, []byte{'\n'})))
			return
		}
		timer.Stop()
	}
}

// write has the sink write lines, and returns how many bytes are kept.
func (l *Log) write(lines []byte) int {
	l.writing.Store(new(time.Now()))
	n, err := l.sink.Write(lines)
	l.writing.Store(nil)
	switch before := l.failure.Load(); {
	case err != nil && before == nil:
		l.o.Log.Error("audit lines cannot be written, and wait", "error", err)
		l.failure.Store(&err)
	case err != nil:
		l.failure.Store(&err)
	case before != nil:
		l.o.Log.Info("audit lines are written again", "lost", l.LostLines())
		l.failure.Store(nil)
	}
	return n
}

// report writes a line that says how many were lost since the last one that says so.
func (l *Log) report() {
	lost := l.lost.Load()
	if lost == l.said {
		return
	}
	line, err := l.line(Entry{Action: linesLost, Result: Failure, Details: map[string]any{"lines": lost - l.said}})
	if err == nil && l.write(line) == len(line) {
		l.said = lost
	}
}
