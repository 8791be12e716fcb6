package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/graph"
)

// Store keeps the journals of runs. Its methods may be called from several
// goroutines and, on stores that outlive the process, from several processes.
//
// A run has an id: eight characters of lower-case Crockford base 32. Wherever an id is
// taken, any beginning of it that means one run will do; one that means none is an
// error with code NotFound, and one that means several has code Usage and lists them.
type Store interface {
	// Create begins a run with the checkpoint before its first super-step. The store
	// picks the id. The caller holds the run's lease until it closes the journal. If a claim of info conflicts, the
	// error is a [*ConflictError] and there is no run.
	Create(ctx context.Context, info Info, start Checkpoint) (Journal, error)

	// Open takes the lease of a run that has not ended, to resume it. If another
	// process holds the lease the error is a [*LeaseError]; if the run has ended it is
	// an [*EndedError]; if a part of it is not on record, a [*GapError]. A run with one of the statuses in unless is
	// refused with an [*EndedError], too; it is looked at in the same moment as the lease.
	Open(ctx context.Context, id string, unless ...Status) (Journal, Recovery, error)

	// AcceptGap makes a run with a gap one that can be opened: it resumes from the record, and repeats
	// what it did in the gap. A run that another process holds is
	// a [*LeaseError], and one without a gap is left as it is.
	AcceptGap(ctx context.Context, id string) error

	// Runs returns the runs that match, newest first, as a list needs them: see
	// [Info.Head]. A run whose record cannot be read is listed as Damaged.
	Runs(ctx context.Context, q Query) ([]Info, error)

	// Info returns what describes a run, complete.
	Info(ctx context.Context, id string) (Info, error)

	// History returns what is on record of a run. Its Info is complete.
	History(ctx context.Context, id string) (History, error)

	// Pending returns the questions of a run that wait for an answer, in order.
	Pending(ctx context.Context, id string) ([]Pending, error)

	// Answered returns the questions of a run that have their answers, in order.
	Answered(ctx context.Context, id string) ([]Pending, error)

	// Waits returns what a run waits for besides answers, in order.
	Waits(ctx context.Context, id string) ([]Pending, error)

	// Signal keeps a signal for a run that has not ended, also while a process holds it, and returns it as it is on record. The
	// value is JSON. If the run is over by being done it is an [*EndedError].
	Signal(ctx context.Context, id, name string, value []byte, key string) (Signal, error)

	// Withdraw marks a signal so that no wait takes it. It reports false if one has, or there is no such signal.
	Withdraw(ctx context.Context, id string, number int) (bool, error)

	// Signals returns the signals of a run, in the order in which they came.
	Signals(ctx context.Context, id string) ([]Signal, error)

	// Step returns the result of a step on record, in JSON, by its number in the history.
	Step(ctx context.Context, id string, number int) ([]byte, error)

	// Events returns events on record after the one with the number after, 0 for all from the
	// beginning, in order, at most limit of them; 0 and less mean no limit. Events are numbered
	// from 1 without a gap, and what has a number stays as it is.
	Events(ctx context.Context, id string, after, limit int) ([]EventRecord, error)

	// Checkpoint returns the state after a super-step, 0 for the start and -1 for the
	// last one committed.
	Checkpoint(ctx context.Context, id string, step int) (Checkpoint, error)

	// Answer answers a pending question of a run, also while a process holds the run: the first answer counts. The error
	// of one that comes later, here or to [Journal.Task], wraps [ErrAnswered]. A run with a gap is a [*GapError].
	Answer(ctx context.Context, id, question string, r Reply) error

	// Claim gives a run that has no owner to owner, and returns the owner that it has then.
	Claim(ctx context.Context, id string, owner auth.Owner) (*auth.Owner, error)

	// Delete forgets runs, by full ids, and returns the ids of the deleted ones. Runs
	// at work and runs that wait are left alone: only what is [Status.Over] is deleted. A
	// store that others write holds them up for moments only, however much it deletes.
	Delete(ctx context.Context, ids ...string) (deleted []string, err error)

	Entries

	// Close closes the journals that are open, which ends their leases.
	Close() error
}

// Journal writes the record of one run. All methods but Task and Event return once
// what they were given is as safe as the store's durability promises. They may be
// called from several goroutines.
//
// A lease has an epoch: the number of times that the run was opened. Every write names
// it. Once another process has opened the run, nothing can be written any more: the
// error wraps [ErrLeaseLost].
type Journal interface {
	// ID returns the id of the run.
	ID() string

	// Lease returns a context that ends once the journal finds that its lease is lost,
	// with the error as its cause, or is closed. The journal looks by itself, also while
	// nothing is written.
	Lease() context.Context

	// Confirm returns an error that wraps [ErrLeaseLost] if the lease is lost. It must be called
	// before anything is done, and costs nothing unless the process was stopped,
	// or slept, for so long that it may have lost the lease meanwhile.
	Confirm(ctx context.Context) error

	// Working notes that the work of the run begins or resumes now. If the process dies after that, without having
	// given the lease back, the next Open counts a takeover, see [Info.Takeovers]. Of a run that has only waited for its
	// turn it counts none.
	Working(ctx context.Context) error

	// SetTerms replaces the Terms of the run by those of info, which otherwise is as Open has returned it.
	SetTerms(ctx context.Context, info Info) error

	// Gap notes that a part of the run is not on record, as [Gap] says, so that the run
	// is not taken for one that can be resumed. The note is kept outside of what cannot be
	// written, if there is such a place, and taken over into the record later. A later
	// note replaces the one before.
	Gap(ctx context.Context, g Gap) error

	// Task returns the record of the steps that a node makes in a super-step. Work that is one
	// task has it under super-step 1 and no node.
	Task(step int, node string) steps.Recorder

	// Finished keeps the result of a task whose super-step is not over, and may be a later one than that under way. What the task asked and has no answer is withdrawn.
	Finished(ctx context.Context, t TaskRecord) error

	// Commit ends a super-step: the checkpoint after it and the visits of its nodes are
	// kept, and the task records it used up are dropped, all or nothing. With visits given,
	// c.Visits differs from the previous checkpoint's only in their nodes and in removed ones. The
	// caller may change the map once Commit has returned.
	Commit(ctx context.Context, c Checkpoint, visits []Visit) error

	// SetState replaces the state of the last checkpoint, which is all that is on record: nothing of the super-step after it is.
	SetState(ctx context.Context, state graph.State) error

	// Asked keeps a question that waits for its answer. It is over when the step with
	// its key is recorded. A question that is asked again, such as by a resumed run, keeps the time at
	// which it was asked first.
	Asked(ctx context.Context, p Pending) error

	// Take returns the signal that a wait takes, and notes that: the first one with the name that no wait took and that came
	// before a time, zero for any. A wait that took one, which by names, gets that one again. ok is false if there is none.
	Take(ctx context.Context, name, by string, before time.Time) (s Signal, ok bool, err error)

	// Event keeps an event for those who look at the run later, and returns the number that
	// it gets: one more than the event before it, from 1. It is written together with the
	// next record or, if the store does so, soon by itself. Numbers of events that were lost
	// before they were written are given again.
	Event(ev event.Event) (number int)

	// End sets the status of the run.
	End(ctx context.Context, e Ending) error

	// Close writes what is left and gives the lease back.
	Close() error
}

// Status is what a run is doing.
type Status string

// The statuses. A run that is running while no process holds its lease was
// interrupted: it can be resumed, like one that is suspended, canceled or failed.
const (
	Running   Status = "running"
	Suspended Status = "suspended" // waits for a human, or stopped at a budget or a breakpoint
	Canceled  Status = "canceled"  // stopped by the user
	Failed    Status = "failed"
	Done      Status = "done"
)

// Resumable reports whether a run with the status can be resumed.
func (s Status) Resumable() bool { return s != Done }

// Over reports whether a run with the status neither works nor waits.
func (s Status) Over() bool { return s == Done || s == Failed || s == Canceled }

// State returns how a run is: its status, or interrupted if it was running when its process died, unrecorded if a part of it is not on
// record, so that it cannot be resumed, or damaged if its record cannot be read.
func (i Info) State() string {
	switch {
	case i.Damaged:
		return "damaged"
	case i.Gap != nil && i.Status.Resumable():
		return "unrecorded"
	case i.Status == Running && !i.Active && !i.Queued:
		return "interrupted"
	}
	return string(i.Status)
}

// Kind says what a run does.
type Kind string

// The kinds of run.
const (
	GraphRun Kind = ""      // the graph of an agent
	ChatRun  Kind = "chat"  // a turn of a conversation
	AgentRun Kind = "agent" // a turn of a plain agent
)

// Info describes a run.
type Info struct {
	ID          string
	Kind        Kind
	Agent       string // name
	AgentDir    string // absolute
	Dir         string // working directory, absolute
	Graph       string // name in the definition
	Fingerprint string // of the definition, see Fingerprint
	Definition  []byte // text of the definition
	Prompt      string
	Question    []byte            // of a chat: JSON of what is asked, as package conversation has it
	Variables   map[string]string // of the agent
	Model       string            // id the user asked for, empty for none
	Parent      string            // "id@step" it was forked from, empty for none
	Owner       *auth.Owner       // nil for one that was started on the command line
	Served      bool              // it belongs to a server, which resumes it after an interruption
	ByName      bool              // the agent is the one called Agent, wherever that is; else the one at AgentDir
	Terms       *Terms            // nil for none
	EqualWrites bool              // what a node writes counts also if it is what was there, as in all runs that began with a release that has this

	Beginning
	Admission

	// Files are digests of the files that the run uses beside the definition: scripts
	// and the scripts of tools. Names are relative where they can be. Nil means unknown.
	Files map[string]string

	// The rest is kept up to date by the store.
	Status     Status
	Started    time.Time
	Updated    time.Time
	Steps      int        // super-steps committed
	Usage      chat.Usage // with what recorded model steps of an open super-step used
	Failures   int        // tolerated
	Output     string     // of a run that is done
	Error      string     // of one that failed
	Code       fault.Code
	Undone     *Undone     // how far the effects of one that failed or was canceled are undone; nil for any other
	Breakpoint string      // where one stopped as its user wanted, such as "before publish"; empty for any other
	Until      time.Time   // when a run that waits for its provider or for a time can resume; zero for any other
	Active     bool        // a process holds the lease now
	Queued     bool        // it is running and no process holds it: it waits for one of the servers that share the store, see [Shared]
	Held       *LeaseError // who holds it; nil if no process does
	Gap        *Gap        // what is not on record, nil for nothing
	Takeovers  int         // how many times in a row a process died at work on it with nothing new on record, see [Journal.Working]
	Events     int         // on record
	Damaged    bool        // the record cannot be read; what is not known is empty
}

// Terms are what a client asked for when it began a run of a server. They also hold when the run resumes in another
// server. A run of the command line has a budget at most.
type Terms struct {
	Yes      bool `json:"yes,omitempty"` // whatever tools would ask is answered with yes
	NoStream bool `json:"no_stream,omitempty"`
	// NoCompensate says that the effects of the run are not undone if it fails or is canceled.
	NoCompensate bool         `json:"no_compensate,omitempty"`
	Budget       graph.Budget `json:"budget,omitzero"` // holds beside that of the agent
	Origins
}

// Origins are the terms that follow from where a run was started, and hold wherever it resumes.
type Origins struct {
	Most  sandbox.Level `json:"sandbox,omitempty"` // the most that its agent may do; "" for no bound
	Depth int           `json:"depth,omitempty"`   // how many programs call each other as tools until this run; 0 for one that no other program calls
}

// Within returns the most that the agent of a run may do, the zero value for no bound. t may be nil.
func (t *Terms) Within() sandbox.Declaration {
	switch {
	case t == nil || t.Most == sandbox.Full:
		return sandbox.Declaration{}
	case t.Most == sandbox.Network:
		return sandbox.Declaration{Level: t.Most, Hosts: []string{"*"}}
	}
	return sandbox.Declaration{Level: t.Most}
}

// atTerminal returns what of the terms holds on the command line, where users say the rest anew; t may be nil.
func (t *Terms) atTerminal() *Terms {
	if t == nil || t.Budget == (graph.Budget{}) && t.Origins == (Origins{}) {
		return nil
	}
	return &Terms{Budget: t.Budget, Origins: t.Origins}
}

// ChildFile begins the names in [Info.Files] of agents that the run starts as children, and of their
// files.
const ChildFile = "agent "

// HeadSize is the length, in bytes, from which a text is cut in a list.
const HeadSize = 1024

// Head returns i as it is in a list: texts of HeadSize bytes and more are cut and end
// with "…", there are no definition and no question, and events are not counted.
func (i Info) Head() Info {
	i.Definition, i.Question, i.Events = nil, nil, 0
	for _, text := range []*string{&i.Prompt, &i.Output, &i.Error} {
		*text = Head(*text)
	}
	i.Variables = maps.Clone(i.Variables)
	for name, text := range i.Variables {
		i.Variables[name] = Head(text)
	}
	return i
}

// Head returns text, or the beginning of it and "…" if it has HeadSize bytes or more.
func Head(text string) string {
	if len(text) < HeadSize {
		return text
	}
	end := HeadSize - 1
	for end > HeadSize-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// Checkpoint is a run between two super-steps.
type Checkpoint struct {
	Step  int         `json:"step"` // super-steps done
	State graph.State `json:"state"`
	Position

	Effects []graph.Effect `json:"effects,omitempty"` // what would have to be undone, or is left of it; not to be changed
	Undoing *graph.Undoing `json:"undoing,omitempty"` // nil for a run that does not undo its effects
}

// Position is what of a checkpoint all forms of it have. The order of the fields is that of the JSON on record.
type Position struct {
	Frontier  []string       `json:"frontier,omitempty"`
	Waiting   []string       `json:"waiting,omitempty"`
	Visits    map[string]int `json:"visits,omitempty"`
	Taken     map[string]int `json:"taken,omitempty"`   // how often edges with a max were taken, by their place below nodes; not to be changed
	Arrived   map[string]int `json:"arrived,omitempty"` // results that led to nodes whose join counts them since they last ran; not to be changed
	Failures  int            `json:"failures,omitempty"`
	Unhandled int            `json:"unhandled,omitempty"` // of these
	Done      bool           `json:"done,omitempty"`
	Output    string         `json:"output,omitempty"`
	Usage     chat.Usage     `json:"usage"` // of the whole run so far
}

// TaskRecord is a finished task whose super-step is not over.
type TaskRecord struct {
	Step   int
	Result graph.Result // Err is nil
	Visit  Visit
}

// Visit is one execution of a node.
type Visit struct {
	Step     int           `json:"step"`
	Node     string        `json:"node"`
	Type     graph.Type    `json:"type"`
	Number   int           `json:"visit"` // of the node's visits, from 1
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"-"`
	Targets  []string      `json:"targets,omitempty"`
	Usage    chat.Usage    `json:"usage"`
	Retries  int           `json:"retries,omitempty"`
	Failed   bool          `json:"failed,omitempty"`
	Error    string        `json:"error,omitempty"`
	Canceled bool          `json:"canceled,omitempty"` // others were faster, see [graph.Plan.Losers]

	Tolerated int `json:"tolerated,omitempty"` // failures inside of it, see [graph.Result]
}

// Pending is a question that waits for an answer, or another wait of a run.
type Pending struct {
	ID       string    `json:"id"` // unique in the run, for people to type
	Step     int       `json:"step"`
	Node     string    `json:"node"`
	Item     *int      `json:"item,omitempty"`   // number of the item of the map Node that asks, from 0; nil for none
	Key      string    `json:"-"`                // of the step that the answer completes
	Wait     Waiting   `json:"wait,omitempty"`   // what for
	Signal   string    `json:"signal,omitempty"` // name of the one that is waited for
	Kind     string    `json:"kind,omitempty"`   // of the question, see [event.Question]; empty for one of an older release
	Text     string    `json:"text"`
	Options  []string  `json:"options,omitempty"`
	Default  *string   `json:"default,omitempty"`
	Asked    time.Time `json:"asked"`
	Deadline time.Time `json:"deadline,omitzero"` // when the default is taken; zero for never

	Open      bool     `json:"open,omitempty"`      // answers other than the options are accepted
	Multi     bool     `json:"multi,omitempty"`     // the answer is any number of the options, see [ask.JoinAnswers]
	Assignees []string `json:"assignees,omitempty"` // subjects and groups who may answer; empty for all who may see the run

	Rule    string        `json:"rule,omitempty"`    // length predicate that an answer must satisfy, see [graph.ParsePredicate]
	Schemas []value.Value `json:"schemas,omitempty"` // JSON Schemas that it has to fit
}

// Used is what the result of a model's step holds besides the reply.
type Used struct {
	Usage chat.Usage `json:"usage"`
}

// Ending is how an execution of a run ended.
type Ending struct {
	Status Status
	Output string
	Error  string
	Code   fault.Code
	Until  time.Time // when a run that waits for its provider or for a time can resume; zero for one that does not

	Undone     *Undone // how far its effects are undone; nil for a run that does not undo them
	Breakpoint string  // where the run stopped as its user wanted, see [BreakError]; empty for one that did not
}

// Recovery is what Open found on record.
type Recovery struct {
	Info  Info
	Last  Checkpoint
	Tasks []TaskRecord // finished tasks of the super-steps after Last

	Before graph.State // that of Last before the user set keys of it; stores leave it alone
}

// History is what is on record of a run, for people to see.
type History struct {
	Info    Info
	Visits  []Visit   // in order
	Pending []Pending // questions
	Waiting []Pending // for anything else than answers
	Signals []Signal
	Events  []json.RawMessage // in the form of machine output
	Steps   []StepRecord
}

// EventRecord is an event on record.
type EventRecord struct {
	Number int             // of the run's events, from 1
	JSON   json.RawMessage // in the form of machine output
}

// StepRecord is a step on record.
type StepRecord struct {
	Number int // in the order of recording, from 1
	Step   int // super-step
	Node   string
	Key    string
	Kind   steps.Kind
	Name   string
	Done   bool // false: it was begun, and how it ended is unknown
	At     time.Time
	Size   int // bytes of the result
}

// Query selects runs. The zero Query selects all.
type Query struct {
	Dir        string // of this working directory only
	Agent      string
	Unfinished bool
	Origin     string     // of runs with this [Origin.String] only
	View       *auth.View // what it includes only; nil includes all
	Limit      int
	Before     string // id of a run: only runs that began before it. One that is not there is an error with code NotFound
}

// Stamper is a store that can say which runs have changed without reading them.
type Stamper interface {
	// Stamps returns a stamp of each run, by its id. A run whose stamp is the same has not changed.
	Stamps(ctx context.Context) (map[string]string, error)
}

// Stamp returns the stamp of a run with a status that was written last at a time in nanoseconds.
func Stamp(status Status, updated int64) string {
	return strconv.FormatInt(updated, 36) + " " + string(status)
}

// LeaseError says that a run is being run elsewhere.
type LeaseError struct {
	ID    string
	Owner string // process and host
	// Until is when the run can be opened if its process gives no sign of life until
	// then. Zero means that the process is known to live, and keeps the run for as long.
	Until time.Time
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("run %s is running in %s", e.ID, e.Owner)
}

// ErrLeaseLost says that a journal's run is not this process's any more: another one
// took it over, or deleted it. Errors of journals wrap it.
var ErrLeaseLost = errors.New("the run is no longer this process's")

// EndedError says that a run is over and cannot be resumed.
type EndedError struct {
	ID     string
	Status Status
}

func (e *EndedError) Error() string { return fmt.Sprintf("run %s is %s", e.ID, e.Status) }

// ErrAnswered says that a question was answered before. The recorder of a task returns it for a step that completes such a
// question, whose result is the first answer.
var ErrAnswered = errors.New("the question has an answer already")

// ErrClosed says that a journal was used after it was closed.
var ErrClosed = errors.New("the journal of the run is closed")

// StopError is an error of the record of a step that ends the run at once: nothing may make up for it, such as
// the fallback of a node. As the cause of the end of a context it says that no user canceled the run, so that what it did is not undone.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StopError) Unwrap() error { return e.Err }
