package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/workflow/graph"
)

// Error prints err for people: its message, the causes that the message does not
// contain, and what to do about it.
//
//	Error: graph execution failed for agent writer
//
//	Caused by:
//	    0: at node "draft"
//	    1: model openai:gpt-5: the API key was refused
//
//	hint: set OPENAI_API_KEY
//
// A single cause has no number. What the user interrupted is called interrupted, and a
// run that waits for an answer suspended; neither is an error. A nil err prints nothing.
func Error(w io.Writer, err error, color bool) {
	if err == nil {
		return
	}
	on := colors(color)
	messages := chain(err)
	apart := false // an empty line before the hint
	var b strings.Builder
	switch fault.CodeOf(err) {
	case fault.Canceled:
		text := "Interrupted."
		var undone interface{ Summary() string } // what the run did is undone
		if errors.As(err, &undone) {
			text = "Interrupted; " + safe(undone.Summary())
		}
		b.WriteString(on.paintLines(yellow, text) + "\n")
	case fault.Suspended:
		b.WriteString(on.paintLines(yellow, "Suspended: "+strings.Join(messages, ": ")) + "\n")
	default:
		b.WriteString(on.paintLines(red, "Error: "+messages[0]) + "\n")
		b.WriteString(on.paintLines(red, causes(messages[1:])))
		apart = len(messages) > 1
	}
	if hint := safe(fault.HintOf(err)); hint != "" {
		if apart {
			b.WriteByte('\n')
		}
		b.WriteString(on.paint(cyan, "hint:") + " " + strings.ReplaceAll(hint, "\n", "\n      ") + "\n")
	}
	_, _ = io.WriteString(w, b.String())
}

// causes lists messages under a heading, indented: a single one by four columns, several
// with their numbers.
func causes(messages []string) string {
	if len(messages) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nCaused by:\n")
	for i, m := range messages {
		head, rest := fmt.Sprintf("%5d: ", i), "       "
		if len(messages) == 1 {
			head, rest = "    ", "    "
		}
		b.WriteString(head + strings.ReplaceAll(m, "\n", "\n"+rest) + "\n")
	}
	return b.String()
}

// chain takes err's text apart: the part each error of the chain adds, outermost first,
// without control characters. There is always at least one.
//
// Only errors of this module and of fmt.Errorf are taken apart. The user does not need to know that
// "open x: no such file" consists of two.
func chain(err error) []string {
	var messages []string
	for err != nil {
		text := err.Error()
		cause := errors.Unwrap(err)
		if cause == nil || !wraps(err) {
			messages = append(messages, text)
			break
		}
		own, ok := strings.CutSuffix(text, cause.Error())
		if !ok { // the cause stands inside the text
			messages = append(messages, text)
			break
		}
		if own = strings.TrimRight(own, ": \n"); own != "" {
			messages = append(messages, own)
		}
		err = cause
	}
	for i := range messages {
		messages[i] = strings.TrimSpace(safe(messages[i]))
	}
	messages = slices.DeleteFunc(messages, func(m string) bool { return m == "" })
	if len(messages) == 0 {
		messages = []string{"unknown error"}
	}
	return messages
}

// wraps reports whether err's text is its own message followed by that of its cause.
func wraps(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	module, _, _ := strings.Cut(reflect.TypeFor[fault.Error]().PkgPath(), "/internal/")
	path := t.PkgPath()
	return path == "fmt" || path == module || strings.HasPrefix(path, module+"/")
}

// Warning returns the line that warns of text, without a line feed.
func Warning(text string, color bool) string {
	return colors(color).paintLines(yellow, "warning: "+strings.TrimRight(safe(text), "\n"))
}

// Findings prints what validation found about the graph in file, a line each, in the
// form that editors know how to jump to:
//
//	graph.yaml:12:5: error: fetch: next names no node: fatch; did you mean fetch? [unknown-target]
//
// Line and column are left out where they are not known. A finding in the file of a subgraph names that.
func Findings(w io.Writer, file string, findings graph.Findings, color bool) {
	on := colors(color)
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(safe(cmp.Or(f.File, file)) + ":")
		if f.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", f.Line, max(1, f.Column))
		}
		st := yellow
		if f.Severity == graph.SeverityError {
			st = red
		}
		b.WriteString(" " + on.paint(st, string(f.Severity)+":") + " ")
		if f.Node != "" {
			b.WriteString(oneLine(f.Node, nameLimit) + ": ")
		}
		b.WriteString(oneLine(f.Message, warningLimit))
		if f.Hint != "" {
			b.WriteString("; " + oneLine(f.Hint, warningLimit))
		}
		b.WriteString(" [" + string(f.Rule) + "]\n")
	}
	_, _ = io.WriteString(w, b.String())
}
