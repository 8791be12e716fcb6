// Package cases tests agents as their users run them.
//
// A case is a prompt, what answers in place of models and of the user, and what is
// expected: the nodes on the way, the state, the calls of tools, the output, the files. Cases are
// written in YAML files, see [Parse]. [Run] runs each in a process of its own, with an empty
// home, a state directory and a working directory that exist for this case only, and reads the events
// the process reports. [Check] compares them with the expectations.
package cases

import (
	"regexp"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Suffix is how names of files with cases end.
const Suffix = ".test.yaml"

// DefaultTimeout is how long a case may take that does not say.
const DefaultTimeout = time.Minute

// Suite is a file with cases.
type Suite struct {
	File  string // path as it was given
	Cases []*Case

	// Warnings are findings that do not keep the cases from running: unknown keys.
	Warnings []*yamldoc.Problem

	src []byte // the text of the file
}

// Case is one test of an agent.
type Case struct {
	Name  string
	Suite *Suite
	Pos   yamldoc.Pos // of its name

	Agent     string // absolute directory, or name of an installed agent
	Prompt    string
	Model     string // id of the one that the user asks for, "" for none
	Variables map[string]string
	Env       map[string]string // of the process, beside the few variables that each gets
	Files     map[string]string // of the working directory, by slashed path
	Yes       bool              // calls of tools are consented to
	Timeout   time.Duration

	// Answers are answers to questions, by id of the question or node, or in order; nil has none.
	Answers []Answer

	// What answers in place of all models: a file of rules for the model builtin:script, the text
	// of one, or a cassette. At most one is set. Without any, the models of the program answer;
	// others are not configured.
	Script     string // absolute path
	ScriptText []byte
	Cassette   string // absolute path

	Expect Expect
}

// Answer is what the user answers to a question.
type Answer struct {
	Question string // id, or node that asks; empty for the next question, whichever it is
	ask.Given
	Pos yamldoc.Pos
}

// Expect is what is expected of a case. What is nil may be anything, but for the exit status.
type Expect struct {
	Pos    yamldoc.Pos
	Exit   *Number // nil means 0, or any other one if Error is set
	Route  *Names  // nodes, in the order in which they began
	State  []Member
	Calls  *Calls
	Output *Text
	Error  *Text // of the run, with what the program reports on standard error
	Files  []File
	Tokens *Number // used, at most
	Cost   *Number // in US dollars, at most
}

// Number is an expected number.
type Number struct {
	Value float64
	Pos   yamldoc.Pos
}

// Names is an expected list of names. Of Exact and the others one is set.
type Names struct {
	Pos      yamldoc.Pos
	Exact    []string
	IsExact  bool
	Contains []string // in this order, with others between them
	Lacks    []string
}

// Text is what is expected of a text. Line feeds at its end do not count.
type Text struct {
	Pos      yamldoc.Pos
	Equals   *string
	Contains []string
	Lacks    []string
	Matches  *regexp.Regexp

	plain bool // it is written as the text itself
}

// Member is what is expected of a value of the state.
type Member struct {
	Pos    yamldoc.Pos
	Key    string
	Value  value.Value
	Text   *Text // instead of the value
	Absent bool  // there is no such key
}

// File is what is expected of a file of the working directory.
type File struct {
	Pos    yamldoc.Pos
	Path   string
	Text   *Text
	Absent bool // there is no such file
}

// Calls are the calls of tools that are expected.
type Calls struct {
	Pos   yamldoc.Pos
	List  []Call
	Mode  Mode
	Lacks []string // tools that are not called
}

// Mode says how calls are compared with a list.
type Mode string

// The modes.
const (
	Exactly  Mode = "exactly"  // these calls, in this order
	Contains Mode = "contains" // these in this order, with others between them
	Any      Mode = "any"      // these, in any order, and others
)

// Call is a call of a tool.
type Call struct {
	Pos       yamldoc.Pos
	Name      string
	Arguments *value.Object // members that the arguments have; nil for any arguments
}
