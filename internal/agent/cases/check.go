package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
	"loki/internal/tool/builtin/patch"
)

// Failure is one thing that was not as expected.
type Failure struct {
	Pos     yamldoc.Pos // of the expectation in the file of the case
	What    string      // route, output, state.KEY and so on
	Message string
	Diff    string // of what is expected and what came, as a unified diff; may be empty
}

// checker collects failures.
type checker struct {
	trace    *Trace
	failures []Failure
}

func (k *checker) fail(pos yamldoc.Pos, what, format string, args ...any) {
	k.failures = append(k.failures, Failure{Pos: pos, What: what, Message: fmt.Sprintf(format, args...)})
}

// differ reports that two texts are not the same.
func (k *checker) differ(pos yamldoc.Pos, what, message, want, got string) {
	diff, _ := patch.Diff(line1(want), line1(got))
	k.failures = append(k.failures, Failure{Pos: pos, What: what, Message: message, Diff: diff})
}

// line1 returns a text that ends with one line feed.
func line1(s string) string { return strings.TrimRight(s, "\n") + "\n" }

// Check compares what a case did with what is expected.
func Check(c *Case, t *Trace) []Failure {
	k := &checker{trace: t}
	e := &c.Expect
	k.exit(e)
	if e.Route != nil {
		k.route(e.Route)
	}
	for _, m := range e.State {
		k.member(m)
	}
	if e.Calls != nil {
		k.calls(e.Calls)
	}
	if e.Output != nil {
		k.text("output", e.Output, t.Output)
	}
	if e.Error != nil {
		k.text("error", e.Error, strings.TrimSpace(t.Error+"\n"+t.Stderr))
	}
	for _, f := range e.Files {
		k.file(f)
	}
	if used := t.Usage.InputTokens + t.Usage.OutputTokens; e.Tokens != nil && float64(used) > e.Tokens.Value {
		k.fail(e.Tokens.Pos, "tokens", "%d tokens were used, more than %.0f", used, e.Tokens.Value)
	}
	if e.Cost != nil && t.Usage.Cost > e.Cost.Value {
		k.fail(e.Cost.Pos, "cost", "the run cost %g USD, more than %g", t.Usage.Cost, e.Cost.Value)
	}
	if e.Cost != nil && t.Usage.CostUnknown {
		k.fail(e.Cost.Pos, "cost", "the price of at least one model is not known")
	}
	for _, a := range c.Answers {
		if a.Question != "" && !t.asked(a.Question) {
			k.fail(a.Pos, "answers", "the question %s was not asked; asked: %s", a.Question, nameList(t.Questions))
		}
	}
	if ordered := slices.DeleteFunc(slices.Clone(c.Answers), func(a Answer) bool { return a.Question != "" }); len(ordered) > len(t.Questions) {
		k.fail(ordered[len(t.Questions)].Pos, "answers", "there are %d answers; asked: %s", len(ordered), nameList(t.Questions))
	}
	slices.SortStableFunc(k.failures, func(a, b Failure) int { return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column) })
	return k.failures
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// exit checks the exit status.
func (k *checker) exit(e *Expect) {
	t := k.trace
	switch {
	case e.Exit == nil && e.Error == nil && t.Exit != 0:
		k.fail(e.Pos, "exit", "the run failed with exit status %d\n%s", t.Exit, tail(t.Stderr))
	case e.Exit == nil && e.Error != nil && t.Exit == 0:
		k.fail(e.Error.Pos, "exit", "the run succeeded, and an error is expected")
	case e.Exit != nil && float64(t.Exit) != e.Exit.Value:
		k.fail(e.Exit.Pos, "exit", "exit status %d, and %.0f is expected\n%s", t.Exit, e.Exit.Value, tail(t.Stderr))
	}
}

// route checks the nodes on the way.
func (k *checker) route(n *Names) {
	got := k.trace.Route
	if n.IsExact && !slices.Equal(got, n.Exact) {
		k.differ(n.Pos, "route", "the run took another way", strings.Join(n.Exact, "\n"), strings.Join(got, "\n"))
	}
	rest := got
	for _, name := range n.Contains {
		i := slices.Index(rest, name)
		if i < 0 {
			k.fail(n.Pos, "route", "node %s is missing, in this order: %s; the run went %s", name, strings.Join(n.Contains, " → "), strings.Join(got, " → "))
			break
		}
		rest = rest[i+1:]
	}
	for _, name := range n.Lacks {
		if slices.Contains(got, name) {
			k.fail(n.Pos, "route", "node %s was visited; the run went %s", name, strings.Join(got, " → "))
		}
	}
}

// text checks a text.
func (k *checker) text(what string, want *Text, got string) {
	if want.Equals != nil && line1(*want.Equals) != line1(got) {
		k.differ(want.Pos, what, "it is not what is expected", *want.Equals, got)
	}
	for _, s := range want.Contains {
		if !strings.Contains(got, s) {
			k.fail(want.Pos, what, "it does not contain %q:\n%s", s, excerpt(got))
		}
	}
	for _, s := range want.Lacks {
		if strings.Contains(got, s) {
			k.fail(want.Pos, what, "it contains %q:\n%s", s, excerpt(got))
		}
	}
	if want.Matches != nil && !want.Matches.MatchString(got) {
		k.fail(want.Pos, what, "it does not match %s:\n%s", strings.TrimPrefix(want.Matches.String(), "(?s)"), excerpt(got))
	}
}

// excerptSize bounds a text in a message, in bytes.
const excerptSize = 2000

func excerpt(s string) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= excerptSize {
		return s
	}
	head, end := text.Ends(s, excerptSize)
	return head + "\n[…]\n" + end
}

// member checks a value of the state.
func (k *checker) member(m Member) {
	what := "state." + m.Key
	got, ok := k.trace.State[m.Key]
	switch {
	case m.Absent && ok && !got.IsNull():
		k.fail(m.Pos, what, "it is there: %s", excerpt(got.String()))
	case m.Absent:
	case !ok:
		k.fail(m.Pos, what, "the state has no such key")
	case m.Text != nil:
		k.text(what, m.Text, got.Text())
	case !same(m.Value, got):
		k.differ(m.Pos, what, "it is not what is expected", readable(m.Value), readable(got))
	}
}

// same compares an expected value with one that came. Line feeds at the end of a text do not count.
func same(want, got value.Value) bool {
	a, ok1 := want.AsString()
	b, ok2 := got.AsString()
	return ok1 && ok2 && line1(a) == line1(b) || value.Equal(want, got)
}

// readable returns a text as it is, and another value as JSON on several lines.
func readable(v value.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	return v.Lines()
}

// calls checks the calls of tools.
func (k *checker) calls(want *Calls) {
	got := k.trace.Calls
	switch want.Mode {
	case Exactly:
		if len(got) != len(want.List) || slices.ContainsFunc(indices(got), func(i int) bool { return !want.List[i].is(got[i]) }) {
			k.differ(want.Pos, "calls", "other tools were called", expectedCalls(want.List, got), madeCallList(got))
		}
	case Contains:
		rest := got
		for _, c := range want.List {
			i := slices.IndexFunc(rest, c.is)
			if i < 0 {
				k.fail(c.Pos, "calls", "this call was not made, or not in this order: %s\nmade:\n%s", c, madeCallList(got))
				return
			}
			rest = rest[i+1:]
		}
	case Any:
		rest := slices.Clone(got)
		for _, c := range want.List {
			i := slices.IndexFunc(rest, c.is)
			if i < 0 {
				k.fail(c.Pos, "calls", "this call was not made: %s\nmade:\n%s", c, madeCallList(got))
				return
			}
			rest = slices.Delete(rest, i, i+1)
		}
	}
	for _, name := range want.Lacks {
		if slices.ContainsFunc(got, func(c MadeCall) bool { return c.Name == name }) {
			k.fail(want.Pos, "calls", "%s was called:\n%s", name, madeCallList(got))
		}
	}
}

func indices[T any](list []T) []int {
	is := make([]int, len(list))
	for i := range is {
		is[i] = i
	}
	return is
}

// is reports whether a call is the expected one.
func (c Call) is(m MadeCall) bool {
	if c.Name != m.Name {
		return false
	}
	args := m.Arguments.AsObject()
	for name, v := range c.Arguments.All() {
		if got, ok := args.Get(name); !ok || !same(v, got) {
			return false
		}
	}
	return true
}

func (c Call) String() string {
	if c.Arguments == nil {
		return c.Name
	}
	return c.Name + " " + c.Arguments.Value().String()
}

// expectedCalls returns the expected calls. One that was made in its place is shown as it was made.
func expectedCalls(list []Call, got []MadeCall) string {
	lines := make([]string, len(list))
	for i, c := range list {
		if lines[i] = c.String(); i < len(got) && c.is(got[i]) {
			lines[i] = got[i].String()
		}
	}
	return strings.Join(lines, "\n")
}

func (c MadeCall) String() string { return c.Name + " " + c.Arguments.String() }

func madeCallList(list []MadeCall) string {
	lines := make([]string, len(list))
	for i, c := range list {
		lines[i] = c.String()
	}
	return strings.Join(lines, "\n")
}

// file checks a file of the working directory.
func (k *checker) file(f File) {
	what := "files." + f.Path
	switch text, there := k.trace.Files[f.Path]; {
	case f.Absent && there:
		k.fail(f.Pos, what, "the file is there")
	case f.Absent:
	case !there:
		k.fail(f.Pos, what, "there is no such file")
	default:
		k.text(what, f.Text, text)
	}
}
