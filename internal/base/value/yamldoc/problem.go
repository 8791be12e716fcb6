package yamldoc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a text. The zero Pos is unknown.
type Pos struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// Problem is one thing that is wrong with a document. It is an error.
type Problem struct {
	File string // as given to Parse; may be empty
	Pos  Pos
	Path string // of the value or the mapping it concerns, "nodes.a.next[1]"; may be empty
	Key  string // the mapping key it is about, if it is about a key and not a value
	Msg  string // what is wrong, lower case, without place and path
	Hint string // what to do about it; may be empty

	line string // the source line; empty if hidden or unknown
}

// Text returns the problem and, if there is one, its hint, as one line for a user.
func (p *Problem) Text() string {
	if p.Hint == "" {
		return p.Error()
	}
	return p.Error() + "; " + p.Hint
}

// Error returns "file:line:column: path: message".
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Pos == Pos{}:
		if p.File != "" {
			b.WriteString(p.File + ": ")
		}
	case p.File != "":
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Pos.Line, p.Pos.Column)
	default:
		fmt.Fprintf(&b, "line %d, column %d: ", p.Pos.Line, p.Pos.Column)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// excerptWidth bounds the characters of the line that an excerpt shows.
const excerptWidth = 120

// Excerpt returns the source line with a caret below the place, two lines without a
// final line feed, or "" if the line is not known:
//
//	12 |     prompt: 42
//	   |             ^
func (p *Problem) Excerpt() string {
	if p.line == "" {
		return ""
	}
	line := []rune(p.line)
	at := min(max(p.Pos.Column-1, 0), len(line))
	lead, tail := "", ""
	if start := at - excerptWidth/2; len(line) > excerptWidth && start > 0 {
		line, at, lead = line[start:], at-start, "…"
	}
	if len(line) > excerptWidth {
		line, tail = line[:excerptWidth], "…"
	}
	// Tabs are kept so that the caret stays below its character.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, lead+string(line[:at]))
	number := fmt.Sprint(p.Pos.Line)
	return fmt.Sprintf("%s | %s\n%s | %s^", number, lead+string(line)+tail, strings.Repeat(" ", len(number)), pad)
}

// Problems is the error of a document with several mistakes, in document order.
type Problems []*Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems as errors.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

func (d *Doc) problem(pos Pos, path, msg string) *Problem {
	p := &Problem{File: d.file, Pos: pos, Path: path, Msg: msg}
	if !d.hide {
		p.line = d.line(pos.Line)
	}
	return p
}

func (d *Doc) report(pos Pos, path, msg string) *Problem {
	p := d.problem(pos, path, msg)
	d.errors = append(d.errors, p)
	return p
}

func (d *Doc) warn(pos Pos, path, msg string) *Problem {
	p := d.problem(pos, path, msg)
	d.warnings = append(d.warnings, p)
	return p
}

// line returns line number n without its end.
func (d *Doc) line(n int) string {
	rest := d.src
	for ; n > 1; n-- {
		_, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			return ""
		}
		rest = after
	}
	if n < 1 {
		return ""
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strings.ToValidUTF8(string(line), string(utf8.RuneError))
}
