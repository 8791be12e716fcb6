// Package fault holds the errors that are shown to a user: a stable code for programs, a message
// and a hint for people.
//
// Inside a package plain wrapped errors are enough; they become an [*Error] once,
// at the border where it is known what the failure means for the user. [ExitCode]
// is the only place where a code becomes an exit status.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Code names a kind of failure. Codes are stable: exit statuses, machine output
// and tests depend on them.
type Code string

// The codes, each with its exit status in [ExitCode].
const (
	Failure   Code = "failure"   // anything without a code of its own
	Usage     Code = "usage"     // the command line is wrong
	Config    Code = "config"    // a configuration, role, agent or graph file is wrong
	NotFound  Code = "not_found" // a named thing does not exist
	Provider  Code = "provider"  // a model provider failed
	Refused   Code = "refused"   // a model or its provider declined to answer, or a hook of the user refused
	Tool      Code = "tool"      // a tool or a script failed
	Limit     Code = "limit"     // a budget, cap or time limit was reached
	Suspended Code = "suspended" // a human has to answer and no user can be asked
	Canceled  Code = "canceled"  // the user stopped the work
)

// Error is a failure as a user sees it.
type Error struct {
	Code Code   // required
	Msg  string // what failed, and where; safe to print
	Hint string // what to do next, as a command if there is one; may be empty
	Err  error  // cause, part of the printed chain; may be nil

	Missing string // the kind of thing that does not exist, such as "model"; may be empty
}

// Error returns the message and, after a colon, the chain of causes.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error with code and a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns an error with code and a formatted message in front of err.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...), Err: err}
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// ThatMisses sets the kind of thing that does not exist, one word, and returns e.
func (e *Error) ThatMisses(kind string) *Error {
	e.Missing = kind
	return e
}

// MissingOf returns the kind of thing that does not exist, as the first error in err's chain that says one
// does, outermost first; empty if none does.
func MissingOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Missing != "" {
			return e.Missing
		}
		err = e.Err
	}
	return ""
}

// CodeOf returns the code of the outermost error with a FaultCode method in err's
// chain, such as an [*Error]. A canceled
// context is [Canceled] wherever it is in the chain; nil has no code.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	if e, ok := errors.AsType[coder](err); ok {
		return e.FaultCode()
	}
	return Failure
}

// coder is an error that has a code, such as an [*Error].
type coder interface {
	error
	FaultCode() Code
}

// FaultCode returns the code. Errors of other packages that have a code have such a method too.
func (e *Error) FaultCode() Code { return e.Code }

// HintOf returns the first hint in err's chain, outermost first.
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

var exitCodes = map[Code]int{
	Failure:   1,
	Usage:     2,
	Config:    3,
	NotFound:  4,
	Provider:  5,
	Refused:   5,
	Tool:      6,
	Limit:     7,
	Suspended: 8,
	Canceled:  130,
}

// ExitCode returns the exit status for err: 0 for nil, 1 for an error without a
// code, otherwise the status of its code.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if n, ok := exitCodes[CodeOf(err)]; ok {
		return n
	}
	return 1
}
