package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/cases"
	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/workflow/graph"
)

// testAgents runs the cases of --test and of the paths after it, and prints the results.
func (c *command) testAgents(ctx context.Context) error {
	if c.stray != "" {
		return fault.New(fault.Usage, "%s follows several paths", c.stray).WithHint("write it after the first one: loki --test %s %s ...", c.opts.test, c.stray)
	}
	suites, err := c.suites(append([]string{c.opts.test}, c.opts.text...))
	if err != nil {
		return err
	}
	asker := c.anyTerminal()
	var list []*cases.Case
	for _, s := range suites {
		if err := c.app.Trust.Require(ctx, s.File, asker); err != nil { // its cases set the environment, too
			return err
		}
		c.warnProblems(s.Warnings)
		list = append(list, s.Cases...)
	}
	program, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.Failure, err, "this program")
	}
	paths, err := c.app.Paths.Absolute()
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the working directory")
	}
	o := cases.Options{
		Program: program, Environ: c.environ, Jobs: c.opts.jobs, Graph: c.testedGraph, AgentsDir: paths.AgentsDir,
		Trusted: func(dir string) bool { return c.app.Trust.OfDir(ctx, dir).Trusted },
	}
	if isDirectory(paths.FunctionsDir) {
		o.Functions = paths.FunctionsDir
	}
	if c.opts.output == outputText {
		o.Done = c.printResult
	}
	begin := time.Now()
	if c.opts.rewrite {
		o.Done = nil // the results are those after the update
	}
	results, err := cases.Run(ctx, list, o)
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the directory for the copies of agents")
	}
	report := cases.Report{Results: results}
	if c.opts.rewrite {
		if err := c.updateTests(ctx, suites, &report, o); err != nil {
			return err
		}
	}
	report.Duration = time.Since(begin)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	report.Coverage = c.coverage(report.Results)
	if err := c.printTests(&report); err != nil || report.FailedCount() == 0 {
		return err
	}
	return &fault.Error{Code: fault.Failure, Err: &findingsError{report.FailedCount()}}
}

// printResult prints the result of a case.
func (c *command) printResult(r *cases.Result) {
	var b bytes.Buffer
	cases.WriteResult(&b, r)
	shown := text.Printable(c.hide(b.String()))
	if c.outColor() {
		shown = text.PaintDiffs(shown)
	}
	fmt.Fprint(c.Out, shown)
}

// updateTests records the cassettes that do not match any more, writes what came into the files of the cases that failed, and
// compares the results with that.
func (c *command) updateTests(ctx context.Context, suites []*cases.Suite, report *cases.Report, o cases.Options) error {
	var (
		stale   []*cases.Case
		results []int // of stale, in the report
	)
	for i, r := range report.Results {
		if r.StaleCassette() {
			stale, results = append(stale, r.Case), append(results, i)
		}
	}
	o.Record = true
	recorded, err := cases.Run(ctx, stale, o)
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the directory for the copies of agents")
	}
	written := make(map[string][]byte) // by path
	for i, r := range recorded {
		report.Results[results[i]] = r
		if r.Trace != nil && r.Trace.Recorded != nil {
			written[r.Case.Cassette] = r.Trace.Recorded
			c.note("recorded " + r.Case.Cassette)
		}
	}
	for _, s := range suites {
		updated, accepted := s.Accept(report.Results)
		if accepted == 0 {
			continue
		}
		if err := atomicfile.Write(s.File, updated, atomicfile.Options{}); err != nil {
			return fault.Wrap(fault.Failure, err, "the file of cases")
		}
		written[s.File] = updated
		now, err := cases.Parse(s.File, updated)
		if err != nil {
			return fault.Wrap(fault.Failure, err, "%s after its update", s.File).WithHint("put it back, and report this as a bug")
		}
		c.note(fmt.Sprintf("updated %s: %s", s.File, text.Count(accepted, "expectation")))
		for i, old := range s.Cases {
			for _, r := range report.Results {
				if r.Case == old && r.Trace != nil {
					r.Case = now.Cases[i]
					r.Failures = cases.Check(r.Case, r.Trace)
				}
			}
		}
	}
	for _, s := range suites {
		if err := c.app.Trust.AddWritten(ctx, c.app.Trust.DirOf(s.File), written); err != nil {
			return err
		}
	}
	if c.opts.output == outputText {
		for _, r := range report.Results {
			c.printResult(r)
		}
	}
	return nil
}

// note prints a line about what was done, if there is one.
func (c *command) note(line string) {
	if line != "" && !c.opts.quiet {
		fmt.Fprintln(c.Err, text.Printable(c.hide("▸ "+line)))
	}
}

// suites reads the files with cases at paths: a file, a directory with files below it, or the name of an agent.
// All mistakes in them are reported at once.
func (c *command) suites(paths []string) ([]*cases.Suite, error) {
	var files []string
	for _, path := range paths {
		found, err := c.caseFiles(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	var (
		suites []*cases.Suite
		errs   []error
	)
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			continue
		}
		s, err := cases.Load(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		suites = append(suites, s)
	}
	if len(errs) > 0 {
		return nil, fault.Wrap(fault.Config, errors.Join(errs...), "")
	}
	return suites, nil
}

// caseFiles returns the files with cases that path means.
func (c *command) caseFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err != nil && !strings.ContainsAny(path, `/\`):
		ref, findErr := c.app.Agents.Find(path)
		if findErr != nil {
			return nil, findErr
		}
		path = ref.Dir
	case err != nil:
		return nil, fault.Wrap(fault.NotFound, err, "the cases to test")
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != path && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(d.Name(), cases.Suffix):
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the cases to test")
	}
	if len(files) == 0 {
		return nil, fault.New(fault.NotFound, "there is no file with cases, NAME%s, below %s", cases.Suffix, path).
			WithHint("how to write one: loki --docs testing-agents")
	}
	return files, nil
}

// testedGraph returns the graph of an agent, nil for one without.
func (c *command) testedGraph(name string) (*graph.Graph, error) {
	of, err := c.app.Agents.Peek(name)
	return of.Graph, err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// coverage returns what the results visited of each graph that they are about.
func (c *command) coverage(results []*cases.Result) []cases.Coverage {
	var (
		covered []cases.Coverage
		names   []string
		traces  []*cases.Trace
	)
	graphs := make(map[string]*graph.Graph)
	for _, r := range results {
		if r.Trace != nil {
			traces = append(traces, r.Trace)
		}
		name := filepath.Base(r.Case.Agent)
		if graphs[name] != nil {
			continue
		}
		if g, err := c.testedGraph(r.Case.Agent); err == nil && g != nil {
			graphs[name] = g
			names = append(names, name)
		}
	}
	for _, name := range names {
		covered = append(covered, cases.Cover(name, graphs[name], traces))
	}
	return covered
}

// printTests prints a report as the options ask for.
func (c *command) printTests(r *cases.Report) error {
	var b bytes.Buffer
	if c.opts.junit != "" {
		if err := r.WriteJUnit(&b); err != nil {
			return err
		}
		if err := atomicfile.Write(c.opts.junit, []byte(c.hide(b.String())), atomicfile.Options{Mode: 0o644}); err != nil {
			return fault.Wrap(fault.Failure, err, "the file of --junit")
		}
		b.Reset()
	}
	if c.opts.output == outputText {
		r.WriteSummary(&b)
		_, err := io.WriteString(c.Out, text.Printable(c.hide(b.String())))
		return err
	}
	if err := r.WriteJSON(&b); err != nil {
		return err
	}
	_, err := c.Out.Write(escape([]byte(c.hide(b.String()))))
	return err
}

// withAnswers returns what answers with the file of --answers, or asker without one.
func (c *command) withAnswers(ctx context.Context, asker ask.Asker) (ask.Asker, error) {
	if c.opts.answers == "" {
		return asker, nil
	}
	byName, list, err := readPrepared(ctx, c.opts.answers)
	if err != nil {
		return nil, err
	}
	return ask.NewPrepared(byName, list), nil
}

// readPrepared reads the answers of --answers for a run that begins: a mapping by question or node, or a
// list in order.
func readPrepared(ctx context.Context, path string) (byName map[string]ask.Given, list []ask.Given, err error) {
	err = readAnswerFile(ctx, path, func(doc *yamldoc.Doc) (err error) {
		if doc.Root().Kind() != yamldoc.List {
			byName, err = answersOf(doc)
			return err
		}
		items, _ := doc.Root().List()
		for _, item := range items {
			if given, ok := ask.ReadAnswer(item); ok {
				list = append(list, given)
			}
		}
		return doc.Err()
	})
	return byName, list, err
}
