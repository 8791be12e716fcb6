package hook

import (
	"encoding/json"
	"strings"

	"loki/internal/base/fault"
)

// Decision is what the hooks of one event came to. The zero Decision changes nothing. It survives a round trip through
// JSON, so that it can be recorded.
type Decision struct {
	By        string          `json:"by,omitempty"`        // name of the hook that refused; empty if none did
	Reason    string          `json:"reason,omitempty"`    // of the refusal, never empty if there is one
	Arguments json.RawMessage `json:"arguments,omitempty"` // changed ones of a call; nil if they stay
	Result    *string         `json:"result,omitempty"`    // changed result of a call; nil if it stays
	Notes     []Note          `json:"notes,omitempty"`     // in the order of the hooks
}

// Note is what a hook has to say.
type Note struct {
	Hook string `json:"hook"` // name
	Text string `json:"text"` // not empty
}

// String returns the note with who has written it, as models and users read it.
func (n Note) String() string { return "[Note of the hook " + n.Hook + "]\n" + n.Text }

// Refused reports whether a hook refused.
func (d Decision) Refused() bool { return d.By != "" }

// Refusal returns who refused and why, as a sentence: "the hook x refused it: the reason."
func (d Decision) Refusal() string {
	text := "the hook " + d.By + " refused it: " + d.Reason
	if strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}

// RefusedError says that a hook refused something.
type RefusedError struct {
	What    string // came of it, such as "the user was not asked"
	Refusal string // see [Decision.Refusal]
}

func (e *RefusedError) Error() string { return e.What + ": " + e.Refusal }

// FaultCode returns [fault.Refused].
func (e *RefusedError) FaultCode() fault.Code { return fault.Refused }

// Text returns the notes one after the other, empty without any.
func (d Decision) Text() string {
	texts := make([]string, len(d.Notes))
	for i, n := range d.Notes {
		texts[i] = n.String()
	}
	return strings.Join(texts, "\n\n")
}

// AddTo returns text followed by the notes, which stand apart.
func (d Decision) AddTo(text string) string {
	switch notes := d.Text(); {
	case notes == "":
		return text
	case text == "":
		return notes
	default:
		return text + "\n\n" + notes
	}
}
