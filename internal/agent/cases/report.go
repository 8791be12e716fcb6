package cases

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"loki/internal/agent/cases/cassette"
	"loki/internal/base/text"
	"loki/internal/base/value"
)

// StaleCassette reports whether a case failed because it does something else than its cassette holds, or because there
// is none.
func (r *Result) StaleCassette() bool {
	if r.Case.Cassette == "" || r.Passed() || r.Trace == nil {
		return false
	}
	_, err := os.Stat(r.Case.Cassette)
	return errors.Is(err, fs.ErrNotExist) || cassette.IsMismatch(r.Trace.Error)
}

// Report is the outcome of all cases.
type Report struct {
	Results  []*Result
	Coverage []Coverage
	Duration time.Duration
}

// FailedCount returns the number of cases that failed.
func (r *Report) FailedCount() int {
	n := 0
	for _, res := range r.Results {
		if !res.Passed() {
			n++
		}
	}
	return n
}

// WriteResult writes a line about a case and, if it failed, what was not as expected.
func WriteResult(w io.Writer, r *Result) {
	word := "ok  "
	if !r.Passed() {
		word = "FAIL"
	}
	fmt.Fprintf(w, "%s %s: %s (%.2f s)\n", word, r.Case.Suite.File, r.Case.Name, r.Duration.Seconds())
	for _, f := range r.Failures {
		fmt.Fprintf(w, "     %s\n", strings.ReplaceAll(f.report(r.Case), "\n", "\n       "))
	}
}

// report returns a failure with its place.
func (f Failure) report(c *Case) string {
	s := fmt.Sprintf("%s:%d:%d: %s: %s", c.Suite.File, f.Pos.Line, f.Pos.Column, f.What, strings.TrimRight(f.Message, "\n"))
	if f.Diff != "" {
		s += "\n--- expected\n+++ got\n" + strings.TrimRight(f.Diff, "\n")
	}
	return text.Clean(s) // what agents write is not for the terminal to obey
}

// WriteSummary writes how many cases passed, and what they visited.
func (r *Report) WriteSummary(w io.Writer) {
	for _, c := range r.Coverage {
		fmt.Fprintf(w, "%s: %d of %s, %d of %s", c.Agent, c.Visited, text.Count(c.Nodes, "node"), c.Taken, text.Count(c.Edges, "edge"))
		if c.Nodes+c.Edges > 0 {
			fmt.Fprintf(w, " (%d %%)", 100*(c.Visited+c.Taken)/(c.Nodes+c.Edges))
		}
		if missing := append(c.MissingNodes[:len(c.MissingNodes):len(c.MissingNodes)], c.MissingEdges...); len(missing) > 0 {
			fmt.Fprintf(w, "; not visited: %s", strings.Join(missing, ", "))
		}
		fmt.Fprintln(w)
	}
	failed := r.FailedCount()
	fmt.Fprintf(w, "%d of %s passed in %.2f s\n", len(r.Results)-failed, text.Count(len(r.Results), "case"), r.Duration.Seconds())
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	type failure struct {
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		What    string `json:"what"`
		Message string `json:"message"`
		Diff    string `json:"diff,omitempty"`
	}
	type result struct {
		File     string    `json:"file"`
		Line     int       `json:"line"`
		Name     string    `json:"name"`
		Agent    string    `json:"agent"`
		Passed   bool      `json:"passed"`
		Seconds  float64   `json:"seconds"`
		Failures []failure `json:"failures,omitempty"`
	}
	type report struct {
		Passed   int        `json:"passed"`
		Failed   int        `json:"failed"`
		Seconds  float64    `json:"seconds"`
		Cases    []result   `json:"cases"`
		Coverage []Coverage `json:"coverage,omitempty"`
	}
	out := report{Failed: r.FailedCount(), Seconds: r.Duration.Seconds(), Cases: []result{}, Coverage: r.Coverage}
	out.Passed = len(r.Results) - out.Failed
	for _, res := range r.Results {
		c := res.Case
		one := result{File: c.Suite.File, Line: c.Pos.Line, Name: c.Name, Agent: c.Agent, Passed: res.Passed(), Seconds: res.Duration.Seconds()}
		for _, f := range res.Failures {
			one.Failures = append(one.Failures, failure{f.Pos.Line, f.Pos.Column, f.What, f.Message, f.Diff})
		}
		out.Cases = append(out.Cases, one)
	}
	data, err := value.MarshalLines(out)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// WriteJUnit writes the report as JUnit XML, as servers of continuous integration read it: a test
// suite for each file.
//
// Source: the schema junit-10.xsd of the Jenkins xUnit plugin.
func (r *Report) WriteJUnit(w io.Writer) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Name      string    `xml:"name,attr"`
		Class     string    `xml:"classname,attr"`
		Time      string    `xml:"time,attr"`
		Failures  []failure `xml:"failure"`
		SystemErr string    `xml:"system-err,omitempty"`
	}
	type testsuite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	type testsuites struct {
		XMLName  xml.Name    `xml:"testsuites"`
		Name     string      `xml:"name,attr"`
		Time     string      `xml:"time,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Suites   []testsuite `xml:"testsuite"`
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	out := testsuites{Name: "loki", Time: seconds(r.Duration), Tests: len(r.Results), Failures: r.FailedCount()}
	var total time.Duration
	for _, res := range r.Results {
		c := res.Case
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != c.Suite.File {
			out.Suites, total = append(out.Suites, testsuite{Name: c.Suite.File}), 0
		}
		s := &out.Suites[len(out.Suites)-1]
		total += res.Duration
		s.Tests++
		s.Time = seconds(total)
		tc := testcase{Name: c.Name, Class: strings.TrimSuffix(c.Suite.File, Suffix), Time: seconds(res.Duration)}
		if !res.Passed() {
			s.Failures++
			var texts []string
			for _, f := range res.Failures {
				texts = append(texts, f.report(c))
			}
			first, _, _ := strings.Cut(res.Failures[0].Message, "\n")
			tc.Failures = []failure{{Message: text.Clean(res.Failures[0].What + ": " + first), Type: res.Failures[0].What, Text: strings.Join(texts, "\n")}}
			if res.Trace != nil {
				tc.SystemErr = text.Clean(res.Trace.Stderr)
			}
		}
		s.Cases = append(s.Cases, tc)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
