package render

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/term"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/workflow/graph"
)

// Error prints err for people: what failed, from the outermost context to the cause, and what to do about it.
//
//	Error: graph execution failed for agent writer: at node "draft": model openai:gpt-5: the API key was refused
//	hint: set OPENAI_API_KEY
//
// The further lines of a message, such as a difference, follow indented. Lines are broken at words to have at most columns columns; 0
// breaks none. What the user stopped is called canceled, and a run that waits for an answer suspended; neither is an error. A nil
// err prints nothing.
func Error(w io.Writer, err error, color bool, columns int) {
	if err == nil {
		return
	}
	on := colors(color)
	first, rest := joinChain(chain(err))
	paint := yellow
	switch fault.CodeOf(err) {
	case fault.Canceled:
		first, rest = "Canceled", ""
		var other interface{ Because() string } // of another run
		if errors.As(err, &other) {
			first += ": " + safe(other.Because())
		}
		var undone interface{ Summary() string } // what the run did is undone
		if errors.As(err, &undone) {
			first += "; " + safe(undone.Summary())
		} else {
			first += "."
		}
	case fault.Suspended:
		first = "Suspended: " + first
	default:
		first, paint = "Error: "+first, red
	}
	out := on.paintLines(paint, text.WrapWords(first, columns)) + on.paintRest(paint, rest) + "\n"
	if hint := safe(fault.HintOf(err)); hint != "" {
		out += on.paint(cyan, "hint:") + " " + strings.ReplaceAll(text.WrapWords(hint, columns-6), "\n", "\n      ") + "\n"
	}
	_, _ = io.WriteString(w, out)
}

// paintRest returns the further lines of a message: those of a diff in its colors, others styled.
func (on colors) paintRest(st style, rest string) string {
	if diff := text.PaintDiffs(rest); diff != rest {
		if on {
			return diff
		}
		return rest
	}
	return on.paintLines(st, rest)
}

// joinChain returns the messages of a chain as one line, and the lines that follow the first line of a message: indented, unless there is
// one message only.
func joinChain(messages []string) (first, rest string) {
	indent := "\n    "
	if len(messages) == 1 {
		indent = "\n"
	}
	lines := make([]string, len(messages))
	for i, m := range messages {
		line, more, several := strings.Cut(m, "\n")
		if lines[i] = line; several {
			rest += indent + strings.ReplaceAll(more, "\n", indent)
		}
		if i < len(messages)-1 {
			lines[i] = strings.TrimRight(line, ": ")
		}
	}
	return strings.Join(lines, ": "), rest
}

// chain takes err's text apart: the part each error of the chain adds, outermost first,
// without control characters. There is always at least one.
//
// Only errors of this module and of fmt.Errorf are taken apart. The user does not need to know that
// "open x: no such file" consists of two.
func chain(err error) []string {
	var messages []string
	for err != nil {
		whole := err.Error()
		cause := errors.Unwrap(err)
		if cause == nil || !wraps(err) {
			messages = append(messages, whole)
			break
		}
		own, ok := strings.CutSuffix(whole, cause.Error())
		if !ok { // the cause is inside the text
			messages = append(messages, whole)
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

// Warning returns the line that warns, without a line feed at the end, broken at words as [Error] does.
func Warning(warning string, color bool, columns int) string {
	return colors(color).paintLines(yellow, text.WrapWords("warning: "+strings.TrimRight(safe(warning), "\n"), columns))
}

// Columns returns how wide the terminal is that w writes to, 0 if that is none.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
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
