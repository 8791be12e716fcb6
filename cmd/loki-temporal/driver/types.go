package driver

import (
	"encoding/json"
	"fmt"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/workflow/run"
)

// Names by which a server knows what belongs to a run. They are the same in all versions of the program, so that runs
// continue after an update.
const (
	WorkflowName = "loki-graph"
	ActivityName = "loki-node"

	stepsSignal   = "loki-steps"
	answerUpdate  = "loki-answer" // refuses what is not an answer, and needs a worker
	answerSignal  = "loki-answer" // is on record at once
	signalUpdate  = "loki-signal" // refuses what no node waits for, and needs a worker
	signalSignal  = "loki-signal" // is on record at once; any client of Temporal may send one
	reserveUpdate = "loki-reserve"
	statusQuery   = "loki-status"
	stepsQuery    = "loki-steps"
	pointQuery    = "loki-point"
)

// maxPayload is the largest message, in bytes of JSON, that is sent to a server. Servers refuse payloads of 2 MiB.
const maxPayload = 2_000_000

// Start is what a run begins or resumes with: the input of its workflow. Its texts are sealed.
type Start struct {
	Info      run.Info      `json:"info"`
	Terms     Terms         `json:"terms"`
	Heartbeat time.Duration `json:"heartbeat"` // a worker that gives no sign of life for that long counts as dead; 0 means [DefaultHeartbeat]
	Point     Point         `json:"point"`
}

// DefaultHeartbeat is the time after which a worker without a sign of life counts as dead.
const DefaultHeartbeat = 10 * time.Second

// Terms are what the user asked for with the command that began or resumed a run.
type Terms struct {
	Yes   bool `json:"yes,omitempty"`   // whatever tools would ask is answered with yes
	Force bool `json:"force,omitempty"` // the run resumes although its agent has changed
}

// Point is how far a run has come: what a workflow has to know of the one before it.
type Point struct {
	Last     run.Checkpoint    `json:"last"`
	Open     []OpenTask        `json:"open,omitempty"` // tasks of the super-step after Last that were begun, ascending by node
	Events   []json.RawMessage `json:"events,omitempty"`
	Numbers  int               `json:"numbers,omitempty"`  // how many events there were; Events are the last of them
	Letters  []string          `json:"letters,omitempty"`  // ids of the last letters with answers or signals
	Signals  []run.Signal      `json:"signals,omitempty"`  // that no wait has taken yet
	Numbered int               `json:"numbered,omitempty"` // how many were sent

	// Resumed says that the run was over and resumes by the user's command.
	Resumed bool `json:"resumed,omitempty"`
	// Continued says that the run continues in another workflow because the history of the one before was long.
	Continued bool `json:"continued,omitempty"`
}

// OpenTask is a task of a super-step that is not over.
type OpenTask struct {
	Node    string          `json:"node"`
	Attempt int             `json:"attempt"`        // how often it was executed
	Done    *run.TaskRecord `json:"done,omitempty"` // nil for one that is not finished
	Steps   []Step          `json:"steps,omitempty"`
	Waits   []Question      `json:"waits,omitempty"`
}

// Step is a step of a task on record.
type Step struct {
	Key    string          `json:"key"`
	Kind   steps.Kind      `json:"kind,omitempty"`
	Name   string          `json:"name,omitempty"`
	Begun  bool            `json:"begun,omitempty"` // an effect whose end is unknown
	Result json.RawMessage `json:"result,omitempty"`
}

// used returns what a model's step used.
func (s Step) used() chat.Usage {
	var used run.Used
	if s.Kind == steps.Model && s.Result != nil {
		_ = json.Unmarshal(s.Result, &used) // a result of another form has no usage
	}
	return used.Usage
}

// Question is a question that waits for its answer.
type Question struct {
	run.Pending
	Key string `json:"key"` // of the step that the answer completes
}

// Task is the input of the activity that executes a node.
type Task struct {
	Info run.Info       `json:"info"`
	From run.Checkpoint `json:"from"` // before the super-step; its usage is that of the run without this task's steps

	Node     string `json:"node"`
	Step     int    `json:"step"`
	Visit    int    `json:"visit"`
	Attempt  int    `json:"attempt"` // from 1
	Parallel bool   `json:"parallel,omitempty"`

	Steps     []Step        `json:"steps,omitempty"`
	Further   int           `json:"further,omitempty"`  // how many steps there are beside Steps, for which the workflow is asked
	Worked    time.Duration `json:"worked"`             // for how long the run has worked since it rested
	Reserves  bool          `json:"reserves,omitempty"` // the workflow decides what calls of models may use
	Terms     Terms         `json:"terms"`
	Heartbeat time.Duration `json:"heartbeat"`
}

// Outcome is the result of an execution of a node. Either Done or Failure is set.
type Outcome struct {
	Done    *run.TaskRecord   `json:"done,omitempty"`
	Failure *Failure          `json:"failure,omitempty"`
	Events  []json.RawMessage `json:"events,omitempty"`
}

// Failure is why a node, or a run, did not come to its end. With code [fault.Suspended] it waits: for answers, or until a time.
type Failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	Until   time.Time  `json:"until,omitzero"`
}

// Err returns the failure as an error for the user.
func (f *Failure) Err() error { return fault.New(f.Code, "%s", f.Message).WithHint("%s", f.Hint) }

// Batch is what an activity records at once: the argument of a signal.
type Batch struct {
	Node    string            `json:"node"`
	Step    int               `json:"step"`
	Attempt int               `json:"attempt"`
	Changes []Change          `json:"changes,omitempty"`
	Events  []json.RawMessage `json:"events,omitempty"`
}

// Change is one thing that an activity records. One of the fields is set.
type Change struct {
	Begin    *Step     `json:"begin,omitempty"`
	Forget   string    `json:"forget,omitempty"` // key of a step that was begun and has failed
	Record   *Step     `json:"record,omitempty"`
	Question *Question `json:"question,omitempty"`
	Settle   string    `json:"settle,omitempty"` // id of a reservation that is over
}

// Signal is a signal to a run, which may reach the workflow in more than one way.
type Signal struct {
	ID    string      `json:"id,omitempty"` // of this message: it is read once; empty for one that is
	Name  string      `json:"name"`
	Value value.Value `json:"value"`
}

// Reservation asks for room in the budget of the run for a call of a model.
type Reservation struct {
	ID      string   `json:"id"`
	Node    string   `json:"node"`
	Attempt int      `json:"attempt"`
	Call    run.Call `json:"call"`
}

// Letter has answers of a user, which may reach the workflow in more than one way.
type Letter struct {
	ID      string            `json:"id"`                // of this letter: it is read once
	Answers map[string]string `json:"answers,omitempty"` // by the names of questions
	Lists   []string          `json:"lists,omitempty"`   // names of the ones that are lists, see [run.NotLists]
	Typed   []string          `json:"typed,omitempty"`   // in place of Answers, see [run.TypedAnswers]
}

// Page is the argument of a query for steps of a task.
type Page struct {
	Node    string `json:"node"`
	Attempt int    `json:"attempt"`
	From    int    `json:"from"` // index of the first of them
}

// Request says what a query for the status of a run is to return.
type Request struct {
	After int  `json:"after"` // events after the one with this number; negative for none
	State bool `json:"state"`
}

// Status is how a run stands.
type Status struct {
	Agent    string            `json:"agent"`
	Status   run.Status        `json:"status"`
	Step     int               `json:"step"`               // super-steps done
	Frontier []string          `json:"frontier,omitempty"` // nodes of the next one
	Failures int               `json:"failures,omitempty"` // tolerated
	Usage    chat.Usage        `json:"usage"`
	Waits    []Question        `json:"waits,omitempty"`
	Others   []Question        `json:"others,omitempty"` // waits for a time or a signal
	Until    time.Time         `json:"until,omitzero"`   // when a run that waits for its provider resumes
	Output   string            `json:"output,omitempty"`
	Failure  *Failure          `json:"failure,omitempty"` // of a run that is over without an output, or with failures that its graph says nothing about
	State    *value.Value      `json:"state,omitempty"`
	Events   []json.RawMessage `json:"events,omitempty"` // in the form of machine output
	Next     int               `json:"next"`             // the After of a request for what follows Events
}

// Result is what the workflow of a run returns.
type Result struct {
	Output   string     `json:"output"`
	Steps    int        `json:"steps"`
	Failures int        `json:"failures,omitempty"`
	Usage    chat.Usage `json:"usage"`
	Failure  *Failure   `json:"failure,omitempty"` // some nodes failed, and the graph does not say what happens then
}

// checkSize returns why a message is not sent: its JSON is larger than what a server takes.
func checkSize(what string, size int) error {
	if size <= maxPayload {
		return nil
	}
	return fault.New(fault.Limit, "%s takes %d bytes, and a Temporal server takes at most %d in one message", what, size, maxPayload).
		WithHint("keep large texts in files and pass their names on, or run the agent with loki, whose record has no such limit")
}

// size returns the length of x in JSON.
func size(x any) (int, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return 0, fmt.Errorf("encoding %T: %w", x, err)
	}
	return len(data), nil
}
