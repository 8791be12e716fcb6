package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
)

// Action is what a hook wants of what is about to happen.
type Action string

// The actions. Empty is ActionAllow.
const (
	ActionAllow  Action = "allow"
	ActionRefuse Action = "refuse"
)

// Answer is what a hook prints.
type Answer struct {
	Action    Action          `json:"action,omitempty"`
	Reason    string          `json:"reason,omitempty"`    // of a refusal
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object, in place of the call's; BeforeTool only
	Result    *string         `json:"result,omitempty"`    // in place of that of the call; AfterTool only
	Note      string          `json:"note,omitempty"`
}

// ParseAnswer reads what a hook of a kind printed. Nothing but blanks is the zero Answer. Everything else must be one
// JSON object with members of an [Answer] that mean something for the kind: other members, such that are repeated or
// differ from another one in case only, and values of another type are errors. Reasons and notes that are too long are
// cut. The error is for the user.
func ParseAnswer(kind Kind, printed []byte) (Answer, error) {
	printed = bytes.TrimSpace(printed)
	if len(printed) == 0 {
		return Answer{}, nil
	}
	if !utf8.Valid(printed) {
		return Answer{}, errors.New("its answer is not UTF-8")
	}
	if err := checkMembers(printed); err != nil {
		return Answer{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(printed, &members); err != nil || members == nil {
		return Answer{}, errors.New("its answer is not a JSON object")
	}
	var a Answer
	for name, data := range members {
		if err := a.set(kind, name, data); err != nil {
			return Answer{}, err
		}
	}
	a.Reason, a.Note = text.Cut(strings.TrimSpace(a.Reason), MaxReason), text.Cut(strings.TrimSpace(a.Note), MaxNote)
	return a, nil
}

// set sets the member called name.
func (a *Answer) set(kind Kind, name string, data json.RawMessage) error {
	var err error
	switch {
	case name == "action":
		if err = readText(data, (*string)(&a.Action)); err == nil && a.Action != ActionAllow && a.Action != ActionRefuse {
			return fmt.Errorf("its action is %q, and must be allow or refuse", text.Cut(string(a.Action), 40))
		}
	case name == "reason":
		err = readText(data, &a.Reason)
	case name == "note":
		err = readText(data, &a.Note)
	case name == "arguments" && kind == BeforeTool:
		if a.Arguments = data; data[0] != '{' {
			return errors.New("its arguments are not an object")
		}
	case name == "result" && kind == AfterTool:
		a.Result = new(string)
		err = readText(data, a.Result)
	default:
		return fmt.Errorf("its answer has the member %q, which means nothing for %s", text.Cut(name, 40), kind)
	}
	if err != nil {
		return fmt.Errorf("its %s is not a text", name)
	}
	return nil
}

// readText reads a JSON string, of which null is none.
func readText(data json.RawMessage, s *string) error {
	if data[0] != '"' {
		return errors.New("not a string")
	}
	return json.Unmarshal(data, s)
}

// checkMembers returns an error unless text is one JSON value in which no object has two members whose names are the
// same but for case.
func checkMembers(printed []byte) error {
	d := json.NewDecoder(bytes.NewReader(printed))
	d.UseNumber()
	var open []map[string]bool // names in the objects around the place; nil for a list
	name := false              // the next token is a name or the end of an object
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("its answer is not JSON: %w", err)
		}
		switch delim, _ := t.(json.Delim); {
		case delim == '{' || delim == '[':
			var names map[string]bool
			if delim == '{' {
				names = make(map[string]bool)
			}
			open = append(open, names)
		case delim == '}' || delim == ']':
			open = open[:len(open)-1]
		case name:
			key := strings.ToLower(t.(string))
			if names := open[len(open)-1]; names[key] {
				return fmt.Errorf("its answer has the member %q twice", text.Cut(key, 40))
			} else {
				names[key] = true
			}
			name = false
			continue
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}
