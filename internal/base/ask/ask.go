// Package ask puts questions to a human.
//
// A [Question] is a [Choice] among options, which always lets the human type an
// answer of their own instead, a [Select] or [Multi] which does not, or asks for a
// [Text], a [Line] or a [Secret]. An [Asker] returns the answer: [Terminal] from a
// person at a terminal, [Piped] from lines of a stream, a script of a test. Where
// no user can be asked they return [ErrUnavailable], as [Unavailable] always does, so
// that the caller can put its work aside until a user answers.
package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/base/value"
)

// ErrUnavailable means that no user can be asked here: there is no terminal, or the
// stream of answers has ended. Errors of this package wrap it.
var ErrUnavailable = errors.New("no user can be asked here")

// ErrElsewhere is the cause of the end of the context of a question that is withdrawn, because it was answered in another place.
var ErrElsewhere = errors.New("answered elsewhere")

// Asker puts questions to a user.
type Asker interface {
	// Ask returns the answer to q: the text of an option, the human's own text, or the
	// question's default. It may be called from several goroutines; the questions are
	// then asked one after the other in the order of the calls. The error wraps
	// [ErrUnavailable], ctx's error if ctx ends first, or [context.Canceled] if the
	// human interrupts.
	Ask(ctx context.Context, q Question) (string, error)
}

// AtTerminal reports whether the human whom a asks sits at the terminal of the program, so
// that scripts may talk to them there: a then has a method AtTerminal that says so.
func AtTerminal(a Asker) bool {
	t, ok := a.(interface{ AtTerminal() bool })
	return ok && t.AtTerminal()
}

// Hold keeps the terminal at which a asks for a program that talks to the user itself, until
// release is called. It does nothing for an Asker that does not know how.
func Hold(a Asker) (release func()) {
	if h, ok := a.(interface{ Hold() func() }); ok {
		return h.Hold()
	}
	return func() {}
}

// Kind says what a [Question] asks for.
type Kind int

// The kinds of question.
const (
	Choice Kind = iota + 1 // one of Options, or a text of the human's own
	Text                   // any text, perhaps none
	Select                 // one of Options
	Multi                  // any number of Options; the answer is the result of [JoinAnswers]
	Secret                 // any text, which is shown nowhere
	Line                   // any text of one line, perhaps none
)

// JoinAnswers joins the answers to a [Multi] into one text, a JSON array.
func JoinAnswers(answers []string) string {
	if answers == nil {
		answers = []string{}
	}
	data, err := json.Marshal(answers)
	if err != nil {
		panic(err) // strings can be marshalled
	}
	return string(data)
}

// SplitAnswers returns the answers to a [Multi].
func SplitAnswers(answer string) ([]string, error) {
	var answers []string
	if err := json.Unmarshal([]byte(answer), &answers); err != nil {
		return nil, fmt.Errorf("%q is not a list of answers", answer)
	}
	return answers, nil
}

// Call is a call of a tool that a question is about.
type Call struct {
	ID, Tool  string
	Arguments string // JSON
}

// Question is a question to a human.
type Question struct {
	ID   string // identifies the question for callers that keep answers; not shown
	Kind Kind
	Text string // one or more lines, perhaps Markdown
	// Matter is the part of Text that decides, whose first lines are shown again next to the answers if Text does not fit on the
	// screen. Empty means all of it.
	Matter string

	// Subject is what Text is about, in a few words, for messages about a question that waits. Empty means Text.
	Subject string

	Options []string // of a Choice, Select or Multi

	// Default is the answer if the human gives none. It counts only with HasDefault,
	// and Validate is not called with it.
	Default    string
	HasDefault bool
	// Prefilled puts Default into the field of a Text at a terminal, to be edited.
	Prefilled bool

	// Consent marks a question about permission: for a tool's call, or to repeat an effect
	// that perhaps happened. Lines of a stream never answer it. If "no" is an option, what a user says
	// instead of choosing at a terminal is a no, and the answer begins with that word.
	Consent bool

	// Affirms is the option of a Consent with two options that y chooses, if it is not yes. The other one is then n.
	Affirms string
	// Lasts says that Affirms grants more than what is asked about now, as each option that begins with always does; without
	// Affirms it is not known which option does. At a terminal its key selects it, and Enter takes it.
	Lasts bool

	// Call is the call of a tool that a Consent is about, where its arguments are not those of a model; nil if that is not so, or not known.
	Call *Call

	// Assignees are the subjects and groups of a server who may answer; empty for all who may see the run.
	Assignees []string

	// Where the question comes from, as far as it is known.
	Node  string // graph node
	Map   string // graph node of the map whose item asks; empty for none
	Item  *int   // number of that item, from 0
	Agent string // agent
	Depth int    // 0 for the agent the user talks to, 1 for its children, ...
	Child string // id of the agent if another one started it; it has the name in it

	// Validate returns what is wrong with an answer; nil accepts any. At a
	// terminal the error is shown and the question asked again; in a stream it is
	// returned.
	Validate func(answer string) error
	// Schemas are JSON Schemas that Validate checks, too.
	Schemas []value.Value
	// Rule is the length predicate that Validate checks, for answers that are given when this
	// question is gone. Empty means that there is none.
	Rule string
}

// Form returns what is asked for, as events and records name it.
func (q *Question) Form() string {
	switch {
	case q.Consent:
		return "consent"
	case q.Kind == Choice || q.Kind == Select:
		return "choice"
	case q.Kind == Multi:
		return "choices"
	case q.Kind == Secret:
		return "secret"
	}
	return "text"
}

// refusable reports whether an answer of the user's own is a no.
func (q *Question) refusable() bool {
	return q.Consent && q.Kind == Choice && slices.Contains(q.Options, no)
}

// grants reports whether a single key could grant something: permission, or what an approval or a yes is for.
func (q *Question) grants() bool {
	return len(q.Options) > 0 && (q.Consent || q.Kind == Choice || len(q.letters()) > 0)
}

// refusal returns what a user says as an answer that begins with no.
func refusal(said string) string {
	words := strings.FieldsFunc(strings.ToLower(said), func(r rune) bool { return !unicode.IsLetter(r) })
	switch {
	case len(words) == 0:
		return no
	case words[0] == no:
		return said
	}
	return no + ": " + said
}

// Match returns what a typed line answers. An empty line is the default, if there is
// one. For a Choice, surrounding blanks aside, a line is the option of that text, the
// only option of that text in other letters' case, the option of that number,
// counted from 1, or, of y, n and a, the option yes, no or always; otherwise it is an answer of the human's own. A Select accepts no such
// answer, but the start of only one option unless it is a Consent; a Choice accepts none that is a JSON array of texts. The line for a Multi holds options in the same way, with commas between them,
// or is their JSON array.
func (q *Question) Match(line string) (string, error) {
	if line == "" && q.HasDefault {
		return q.Default, nil
	}
	answer := line
	switch q.Kind {
	case Choice, Select:
		if i := q.optionIndex(strings.TrimSpace(line)); i >= 0 {
			answer = q.Options[i]
		} else if q.Kind == Select {
			return answer, q.noOption(line)
		} else if _, err := SplitAnswers(line); err == nil {
			return answer, notList(line)
		}
	case Multi:
		var err error
		if answer, err = q.matchMulti(line); err != nil {
			return line, err
		}
	}
	return answer, q.validate(answer)
}

func (q *Question) noOption(text string) error {
	return fmt.Errorf("%q is not one of %s", strings.TrimSpace(text), strings.Join(q.Options, ", "))
}

func (q *Question) matchMulti(line string) (string, error) {
	parts, err := SplitAnswers(line)
	find := q.option
	if err != nil {
		parts, find = nil, q.optionIndex
		if strings.TrimSpace(line) != "" {
			parts = strings.Split(line, ",")
		}
	}
	var chosen []string
	for _, part := range parts {
		i := find(strings.TrimSpace(part))
		if i < 0 {
			return "", q.noOption(part)
		}
		if !slices.Contains(chosen, q.Options[i]) {
			chosen = append(chosen, q.Options[i])
		}
	}
	return JoinAnswers(chosen), nil
}

// optionIndex returns the index of the option that text means: as option does, or as the start of only one of a closed list.
func (q *Question) optionIndex(text string) int {
	i := q.option(text)
	if i >= 0 || text == "" || q.Kind == Choice || q.Consent {
		return i
	}
	begins := func(option string) bool { return strings.HasPrefix(strings.ToLower(option), strings.ToLower(text)) }
	if i = slices.IndexFunc(q.Options, begins); i >= 0 && slices.ContainsFunc(q.Options[i+1:], begins) {
		return -1
	}
	return i
}

func (q *Question) option(text string) int {
	if i := slices.Index(q.Options, text); i >= 0 {
		return i
	}
	same := func(option string) bool { return strings.EqualFold(strings.TrimSpace(option), text) }
	if i := slices.IndexFunc(q.Options, same); i >= 0 && slices.IndexFunc(q.Options[i+1:], same) < 0 {
		return i
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Options) {
		return n - 1
	}
	if i, ok := q.letters()[unicode.ToLower([]rune(text + " ")[0])]; ok && len(text) == 1 && strings.ContainsAny(text, "ynaYNA") {
		return i
	}
	return -1
}

func (q *Question) validate(answer string) error {
	if q.Validate == nil {
		return nil
	}
	return q.Validate(answer)
}

// source says where q comes from, "" if that is unknown.
func (q *Question) source() string {
	agent, node := cmp.Or(q.Child, q.Agent), q.Node // several children may be of one agent
	if q.Item != nil {
		node = q.Map + "#" + strconv.Itoa(*q.Item) + " " + node
	}
	if node != "" && agent != "" && q.Depth > 0 {
		return node + " (" + agent + ")"
	}
	return cmp.Or(node, agent)
}

// wrap adds the source of the question to an error.
func (q *Question) wrap(err error) error {
	if err == nil {
		return nil
	}
	if s := q.source(); s != "" {
		return fmt.Errorf("question of %s: %w", s, err)
	}
	return fmt.Errorf("question: %w", err)
}

// turns lets one caller at a time through. Senders that wait on a channel are served
// in the order of their arrival.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

func (t turns) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turns) give() { <-t }
