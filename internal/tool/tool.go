package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/tool/permission"
)

// DefaultTimeout is the time limit of a call without another limit.
const DefaultTimeout = 5 * time.Minute

// Unlimited is the time limit of a tool whose calls have none.
const Unlimited time.Duration = -1

// DefaultMaxOutput is how many bytes of a call's output a model gets without another
// limit. English has about four bytes a token.
const DefaultMaxOutput = 64 << 10

// Tool is a function that a model may call. Its methods may be called from several
// goroutines.
type Tool interface {
	// Declaration returns how the model sees the tool; it is always the same. The name
	// has 1 to 64 letters, digits, "_" and "-" of ASCII.
	Declaration() chat.Tool
	// Hints returns how the tool may be called; it is always the same.
	Hints() Hints
	// Call runs the tool. It returns soon after ctx has ended, and leaves nothing running.
	// The model sees the error's text, which should say what to do next. A result returned
	// with an error is the output so far. An error with code fault.Suspended ends the
	// request instead: the call needs an answer and no user can be asked.
	Call(ctx context.Context, call Call) (Result, error)
}

// Hints describe how a tool behaves. The zero value is a tool that changes something but
// destroys nothing, with the default limits.
type Hints struct {
	ReadOnly    bool // it changes nothing, so that it may be run twice
	Destructive bool // it may destroy what cannot be restored: the user is asked, see [Guard]
	Interactive bool // it talks to the user: such calls run one at a time

	// Writes says that the tool changes files although it counts as ReadOnly elsewhere: it is not offered in plan mode.
	Writes bool

	// Planning says that the tool is offered in plan mode only.
	Planning bool

	// Stateful says that the tool works on a state in the process. Such calls of one reply are
	// made one after the other, in the order of the reply. Their results are not recorded: when a
	// run is resumed the calls are repeated, with the same Key, and bring the state back.
	Stateful bool

	// Instead is set if the result changes by itself, so that a model may call the tool again and
	// again with the same arguments. It says what the model should do instead of that.
	Instead string

	// Sandbox is what the program of the tool declares that it may do; the zero value for tools that declare nothing.
	Sandbox sandbox.Declaration

	// Timeout bounds one call. 0 means the limit of the [Box], and none at all for an
	// interactive tool, as people take their time. [Unlimited] means none.
	Timeout time.Duration
	// MaxOutput is how many bytes of output the model gets; 0 means the limit of the [Box].
	MaxOutput int
}

// Guard is a destructive tool that decides for each call whether the user must be asked. Without
// it, every call of a destructive tool needs consent, and no call of
// another tool does.
type Guard interface {
	// Consent returns the question whether the call may be made, empty if it needs no
	// consent. The question shows everything the user has to know to decide.
	Consent(call Call) (question string)
}

// Outliving is a tool of which some calls start what outlives this program. The user is asked about each of them, whatever rules and options say.
type Outliving interface {
	Outlives(call Call) bool
}

// Judged is a tool whose calls differ in what they may do.
type Judged interface {
	// HintsOf returns the hints by which a call is judged. The hints of the tool itself say how it is run.
	HintsOf(call Call) Hints
}

// Reacher is a tool that sends requests to a host that the model chooses. The user is asked about each host once, unless a
// rule decides.
type Reacher interface {
	// Host returns the host that a call sends to, in lower case. It is empty for a call that would fail.
	Host(call Call) string
}

// Opener is a tool that opens files which its arguments do not name as such: rules that keep files from models hold for them, too.
type Opener interface {
	// Opens returns the files that a call opens, or may open, and what for; empty for reading and writing.
	Opens(call Call) (files []string, use permission.Access)
}

// StandIn is a tool of the user that runs instead of a built-in tool with the same
// name. Its calls are judged as those of the built-in tool would be.
type StandIn interface {
	Tool
	Guard
	// StandsInFor returns the hints by which calls are judged. The hints of the tool itself
	// say how it is run.
	StandsInFor() Hints
}

// Call is one call of a tool.
type Call struct {
	Name      string          // as declared
	Arguments json.RawMessage // a JSON object, never empty

	// Unasked is true if the tool's [Guard] let the call through without a
	// question.
	Unasked bool

	// Hidden reports whether a rule keeps a file from the tool, by its absolute path without symbolic links; nil if there
	// is no such rule. A tool that goes through directories leaves such files out. It may be called from several
	// goroutines.
	Hidden func(path string) bool

	// Judged reports whether the call was judged for the file at an absolute path without symbolic links; nil if that is not
	// known. A tool of the program opens no other, since a link may have been put in the way since then.
	Judged func(path string) bool

	// Readable are directories outside of the workspace that the call may read, such as those of skills.
	Readable []string

	// Sandbox is what the program that a [Confined] tool starts may do: it was allowed or consented to, and nothing
	// beyond it was. The level is empty for other tools, and where there is no sandbox. Tools that do not start a
	// program ignore it.
	Sandbox sandbox.Declaration
	// Consented says that the user has consented to files that a rule asks about: they are open to that program.
	Consented bool

	// Steps is the record of the call, with what it needs if it is repeated. The zero value records nothing.
	Steps steps.Steps

	// Key names the call: it is different for every call of a run, and the same when the call is
	// repeated because the run is resumed.
	Key string

	// RunID is the id of the run that the call belongs to, empty if the run is not
	// recorded.
	RunID string
	// IdempotencyKey is the same when a call is repeated because its end was not recorded, and
	// different for every other call. A tool that changes something
	// elsewhere can pass it on, so that the change is not made twice. It is empty if
	// the run is not recorded.
	IdempotencyKey string
}

// Identify sets the variables by which a program knows for which call it runs, LOKI_RUN_ID and LOKI_IDEMPOTENCY_KEY,
// and returns the names of the ones that the call does not have: they must not come from an outer run.
func (c Call) Identify(set map[string]string) (unset []string) {
	for name, v := range map[string]string{"LOKI_RUN_ID": c.RunID, "LOKI_IDEMPOTENCY_KEY": c.IdempotencyKey} {
		if v == "" {
			unset = append(unset, name)
		} else {
			set[name] = v
		}
	}
	return unset
}

// Result is the outcome of a call.
type Result struct {
	Output string // for the model; empty is a success without words
	Stderr string // what it printed besides

	// Pictures are for models that see. Output says that they are there.
	Pictures []chat.Part

	// Refused is what the sandbox stopped, for calls of a [Confined] tool, or noticed.
	Refused []sandbox.Refusal
}

// Decode reads the arguments of a call into a struct. Members that the struct does not
// have are ignored, as models like to add some. The error is worded for the model.
func Decode[T any](call Call) (T, error) {
	var args T
	err := json.Unmarshal(call.Arguments, &args)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return args, fmt.Errorf("argument %q must be of type %s, not %s", wrong.Field, jsonType(wrong.Type), wrong.Value)
	}
	if err != nil {
		return args, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return args, nil
}

// jsonType returns the name of a Go type in JSON Schema.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "integer"
}

// ExitError reports that the program behind a tool failed. Models rely on its text.
type ExitError struct {
	Tool   string
	Code   int    // exit status
	Signal string // name of the signal that ended it, or empty
	Note   string // a possible explanation, or empty
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("Tool call '%s' exited with code %d", e.Tool, e.Code)
	if e.Signal != "" {
		text = fmt.Sprintf("Tool call '%s' was ended by %s", e.Tool, e.Signal)
	}
	if e.Note != "" {
		text += "; " + e.Note
	}
	return text
}

// marshal returns v as JSON in which <, > and & stay readable.
func marshal(v any) string {
	doc, err := value.Marshal(v)
	if err != nil {
		panic(err) // only texts and checked JSON are passed in
	}
	return string(doc)
}
