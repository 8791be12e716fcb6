package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"loki/internal/chat"
	"loki/internal/value"
)

// DefaultTimeout is how long a call may take where nothing else is said.
const DefaultTimeout = 5 * time.Minute

// DefaultMaxOutput is how many bytes of a call's output a model gets where nothing else
// is said. English has about four bytes a token.
const DefaultMaxOutput = 64 << 10

// Tool is a function that a model may call. Its methods may be called from several
// goroutines.
type Tool interface {
	// Declaration is how the model sees the tool; always the same. The name has 1 to 64
	// letters, digits, "_" and "-" of ASCII.
	Declaration() chat.Tool
	// Hints say how the tool may be called; always the same.
	Hints() Hints
	// Call runs the tool. It returns soon after ctx has ended, and leaves nothing running.
	// An error is told to the model in its own words and so ought to say what can be
	// done; the result beside it is what the tool got until then. An error of code
	// fault.Suspended ends the request instead: the call needs a human and there is none.
	Call(ctx context.Context, call Call) (Result, error)
}

// Hints describe how a tool behaves. The zero value is a tool that changes something but
// destroys nothing, with the default limits.
type Hints struct {
	ReadOnly    bool // it changes nothing, so that it may be run twice
	Destructive bool // it may destroy what cannot be brought back: the user is asked, see [Guard]
	Interactive bool // it talks to the user: such calls run one at a time

	// Timeout bounds one call. 0 means the limit of the [Box], and none at all for an
	// interactive tool, as people take their time.
	Timeout time.Duration
	// MaxOutput is how many bytes of output the model gets; 0 means the limit of the [Box].
	MaxOutput int
}

// Guard is a destructive tool that knows of each call whether the user has to be asked.
// Without it, every call of a destructive tool needs consent; no other's does.
type Guard interface {
	// Consent returns the question whether the call may be made, empty if it may be made
	// without asking. It shows whatever the user has to know to decide.
	Consent(call Call) (question string)
}

// StandIn is a tool of the user that runs instead of one of the program's with the same
// name. Whether its calls may be made is decided as it would be for that one.
type StandIn interface {
	Tool
	Guard
	// StandsInFor returns the hints by which calls are judged. Those of the tool itself say
	// how it is run.
	StandsInFor() Hints
}

// Call is one call of a tool.
type Call struct {
	Name      string          // as declared
	Arguments json.RawMessage // a JSON object, never empty

	// Harmless says that the call may be made because it only reads, and that neither a rule
	// nor the user allowed it.
	Harmless bool

	// Unasked says that the tool's [Guard] let the call through without a question.
	Unasked bool

	// RunID names the run that the call belongs to, empty where nothing is durable.
	RunID string
	// IdempotencyKey is the same when a call is made again because its end was not
	// recorded, and different for every other call. A tool that changes something
	// elsewhere can pass it on, so that the change is not made twice. It is empty where
	// nothing is durable.
	IdempotencyKey string
}

// Result is what a call gave.
type Result struct {
	Output string // for the model; empty is a success without words
	Stderr string // what it printed besides
}

// Decode reads the arguments of a call into a struct. Members that the struct does not
// have are ignored, as models like to add some. The error is worded for the model.
func Decode[T any](call Call) (T, error) {
	var args T
	err := json.Unmarshal(call.Arguments, &args)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return args, fmt.Errorf("argument %q has to be of type %s, not %s", wrong.Field, jsonType(wrong.Type), wrong.Value)
	}
	if err != nil {
		return args, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return args, nil
}

// jsonType is what values of a Go type are called in JSON Schema.
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

// ExitError says that the program behind a tool ended, but not with success. Its text is
// one that models are promised.
type ExitError struct {
	Tool   string
	Code   int    // exit status
	Signal string // name of the signal that ended it, or empty
	Note   string // what may help to explain it, or empty
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
