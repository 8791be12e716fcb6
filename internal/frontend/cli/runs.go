package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/bulk"
)

// withRuns opens the store of runs for work.
func (c *command) withRuns(work func(run.Store) error) error {
	store, err := c.app.OpenRuns()
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// listRuns prints a table of the runs, newest first.
func (c *command) listRuns(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		infos, err := c.runsWhere(ctx, store)
		if err != nil {
			return err
		}
		list := summary.List(infos)
		for n, i := range infos {
			if list[n].Waits, err = summary.Waits(ctx, store, i); err != nil {
				return err
			}
		}
		return c.printRuns(list)
	})
}

// runsWhere returns the runs that --runs lists, read as oneMore says.
func (c *command) runsWhere(ctx context.Context, store run.Store) ([]run.Info, error) {
	if c.opts.where == "" {
		return c.runsOf(ctx, store, c.opts.agent, c.oneMore())
	}
	f, err := bulk.ParseFilter(c.opts.where, time.Now())
	if err != nil {
		return nil, err
	}
	return f.Select(ctx, store, run.Query{Agent: c.opts.agent}, c.oneMore(), nil)
}

// mostRuns is how many runs --runs lists, as the API does.
const mostRuns = 50

// oneMore returns how many runs are read for --runs: one more than it lists, so that it knows whether there are more; 0 for all.
func (c *command) oneMore() int {
	if c.opts.mostRuns == 0 {
		return 0
	}
	return c.opts.mostRuns + 1
}

// printRuns prints a table of runs, which are read as oneMore says.
func (c *command) printRuns(list []api.Run) error {
	if most := c.opts.mostRuns; most > 0 && len(list) > most {
		list = list[:most]
		if !c.opts.quiet {
			fmt.Fprintf(c.Err, "the newest %s; more: loki --runs --limit %d, all: --limit 0\n", text.Count(most, "run"), 10*most)
		}
	}
	return printList(c, list, "no run is on record", display.Runs(list, c.outWidth()))
}

// runsOf returns the runs of an agent, also one that is not there any more, or of a role, and
// those of all if name is empty, the newest first and at most limit; 0 means all. Those of "chat" are the chats without a role.
func (c *command) runsOf(ctx context.Context, store run.Store, name string, limit int) ([]run.Info, error) {
	if name == "" {
		return store.Runs(ctx, run.Query{Limit: limit})
	}
	ref, unknown := c.app.Agents.Find(name)
	if unknown != nil {
		ref.Name = name
	}
	infos, err := store.Runs(ctx, run.Query{Agent: ref.Name, Limit: limit})
	if err == nil && len(infos) == 0 && name != string(run.ChatRun) {
		err = unknown
	}
	return infos, err
}

// showRun prints one run: its path, what its nodes cost, what it waits for.
func (c *command) showRun(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		if c.opts.state {
			return c.showState(ctx, store)
		}
		h, err := store.History(ctx, c.opts.value)
		if err != nil {
			return err
		}
		detail, err := summary.Detail(ctx, store, h)
		if err != nil {
			return err
		}
		return c.printRun(detail)
	})
}

// pathEnd is how many lines of a long path are shown at its beginning and at its end.
const pathEnd = 200

// withoutMiddle returns the path of a run as it is shown: of a long one, the beginning and the end.
func withoutMiddle(path, id string) string {
	lines := strings.SplitAfter(path, "\n")
	left := len(lines) - 2*pathEnd
	if left <= 1 {
		return path
	}
	note := fmt.Sprintf("  ... %s left out; all of them: loki --run %s --output json\n", text.Count(left, "line"), id)
	return strings.Join(lines[:pathEnd], "") + note + strings.Join(lines[pathEnd+left:], "")
}

// timeOf returns how long a run took from its start to its end, or until now, with the times at which it waited.
func timeOf(r api.Run) time.Duration {
	took := r.Updated.Sub(r.Started)
	if r.Status == string(run.Running) {
		took = time.Since(r.Started)
	}
	if took < 10*time.Second {
		return took.Round(time.Millisecond)
	}
	return took.Round(time.Second)
}

// printRun prints one run.
func (c *command) printRun(r api.RunDetail) error {
	if c.opts.output != outputText {
		return printJSON(c.Out, r)
	}
	var b strings.Builder
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, text)
		}
	}
	row("run", r.ID)
	if r.Kind == string(run.ChatRun) {
		row("chat", r.Agent)
	} else {
		row("agent", r.Agent+"  "+r.AgentDir)
	}
	row("status", display.RunStatus(r.Run))
	if r.Gap != nil {
		row("gap", fmt.Sprintf("nothing is on record after super-step %d", r.Gap.Step))
		row("", oneLine(r.Gap.Reason))
	}
	row("started", r.Started.Local().Format(time.DateTime)+"  in "+r.Dir)
	if o := r.Origin; o != nil {
		by := o.Kind + " " + o.Name
		if o.Due != nil {
			by += ", due " + o.Due.Local().Format(time.DateTime)
		}
		row("origin", by)
	}
	if r.Priority != gate.Normal {
		row("priority", r.Priority)
	}
	row("key", r.Key)
	row("time", timeOf(r.Run).String())
	row("forked", r.Parent)
	row("prompt", oneLine(r.Prompt))
	switch {
	case r.Breakpoint != "":
		row("stopped", cut(r.Error, maxText))
	case r.Status == string(run.Canceled) && r.Error == "context canceled": // the status says so
	case r.Status != string(run.Suspended) || len(r.Pending)+len(r.Waits) == 0: // what waits is shown below
		row("error", cut(r.Error, maxText))
	}
	used := fmt.Sprintf("%s, %s", text.Count(r.Tokens, "token"), display.RunCost(r.Run))
	if r.Kind == "graph" {
		used = text.Count(r.Steps, "super-step") + ", " + used
	}
	row("used", used)
	if len(r.Visits) > 0 {
		var path strings.Builder
		printPath(&path, r.Visits, 0, new(int))
		b.WriteString("\npath\n" + withoutMiddle(path.String(), r.ID) + "\n")
		rows := [][]string{{"NODE", "TYPE", "VISITS", "TIME", "TOKENS", "COST", "RETRIES", "FAILURES"}}
		for _, t := range r.Nodes {
			rows = append(rows, []string{
				t.Node, t.Type, strconv.Itoa(t.Visits), time.Duration(t.Seconds * float64(time.Second)).Round(time.Millisecond).String(),
				strconv.Itoa(t.Tokens), display.Cost(chat.Usage{Cost: t.Cost, CostUnknown: t.CostUnknown, Estimated: t.Estimated}), strconv.Itoa(t.Retries), strconv.Itoa(t.Failures),
			})
		}
		b.WriteString(display.Table(rows, 2, 3, 4, 5, 6, 7))
	}
	if len(r.Agents) > 0 {
		if err := printAgents(&b, r.Agents); err != nil {
			return err
		}
	}
	printCalls(&b, r, c.opts.verbose > 0)
	if r.Output != "" {
		b.WriteString("\noutput\n" + strings.TrimRight(cut(r.Output, maxText), "\n") + "\n")
	}
	for n, p := range r.Pending {
		if n == 0 {
			b.WriteString("\nwaiting for an answer\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n", p.ID, indentQuestion(p.Text))
		if len(p.Options) > 0 {
			kind := "options"
			if p.Multi {
				kind = "any number of"
			}
			fmt.Fprintf(&b, "    %s: %s\n", kind, display.Line(strings.Join(p.Options, ", ")))
		}
		if p.Deadline != nil {
			after := "no answer from"
			if p.Default != nil {
				after = "default from"
			}
			fmt.Fprintf(&b, "    %s %s on\n", after, p.Deadline.Local().Format(time.DateTime))
		}
	}
	switch len(r.Pending) {
	case 0:
	case 1:
		fmt.Fprintf(&b, "  answer: loki --resume %s --answer TEXT\n", r.ID)
		if r.Pending[0].Multi {
			b.WriteString("    with commas between several options\n")
		}
	default:
		fmt.Fprintf(&b, "  answer: loki --resume %s --answers FILE, a YAML file with a line for each: %s: ANSWER\n    or one of them: --answer %[2]s=TEXT\n", r.ID, r.Pending[0].ID)
	}
	printWaits(&b, r)
	if r.Breakpoint != "" {
		b.WriteString("\nat a breakpoint\n")
		for line := range strings.Lines(run.FromBreakpoint(r.ID)) {
			b.WriteString("  " + line)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(c.Out, text.Printable(b.String()))
	return err
}

// printWaits prints what a run waits for besides answers.
func printWaits(b *strings.Builder, r api.RunDetail) {
	for n, w := range r.Waits {
		if n == 0 {
			b.WriteString("\nwaiting\n")
		}
		fmt.Fprintf(b, "  %s: %s\n", w.ID, display.Wait(w))
		if w.Signal != "" {
			fmt.Fprintf(b, "    send it: loki --signal %s '%s=JSON'\n", r.ID, display.Line(w.Signal))
		}
	}
	for n, s := range r.Signals {
		if n == 0 {
			b.WriteString("\nsignals\n")
		}
		state := "not taken"
		if s.Taken {
			state = "taken"
		}
		fmt.Fprintf(b, "  %d  %s  %s  %s  %s\n", s.Number, s.At.Local().Format(time.DateTime), display.Line(s.Name), oneLine(string(s.Value)), state)
	}
}

// indentQuestion returns all lines of a question as shown to a user; the first follows its name.
// The user decides by it what may be done, so nothing is left out.
func indentQuestion(question string) string {
	lines := strings.Split(strings.TrimSpace(question), "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// What is shown to people of a text, in bytes; machine output has all of it.
const (
	maxLine = 500
	maxText = 4000
)

// oneLine returns the first line of s, cut if it is long.
func oneLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	short := cut(line, maxLine)
	if rest != "" && short == line {
		short += " ..."
	}
	return short
}

// cut returns s, or its beginning and how many bytes there are.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.TrimSuffix(text.Cut(s, n), text.Mark), len(s))
}

// maxInner is how many super-steps of subgraphs the path of a run shows below one super-step of its graph.
const maxInner = 50

// printPath prints visits, which are in order: a line for each super-step, and indented below it those of its subgraphs. depth is how many
// subgraphs they are in, and inner counts the lines of subgraphs.
func printPath(b *strings.Builder, visits []api.Visit, depth int, inner *int) {
	for _, step := range bySteps(visits) {
		if depth == 0 {
			*inner = 0
		} else if *inner++; *inner > maxInner {
			continue
		}
		fmt.Fprintf(b, "%s  %3d  %s\n", strings.Repeat("     ", depth), step[0].Step, pathOf(step))
		for _, v := range step {
			printPath(b, v.Inner, depth+1, inner)
		}
		if depth == 0 && *inner > maxInner {
			fmt.Fprintf(b, "       and %s inside, all with --output json\n", text.Count(*inner-maxInner, "more super-step"))
		}
	}
}

// bySteps groups visits, which are in order, by their super-step.
func bySteps(visits []api.Visit) [][]api.Visit {
	var steps [][]api.Visit
	for _, v := range visits {
		if n := len(steps); n > 0 && steps[n-1][0].Step == v.Step && path.Dir(steps[n-1][0].Node) == path.Dir(v.Node) {
			steps[n-1] = append(steps[n-1], v)
			continue
		}
		steps = append(steps, []api.Visit{v})
	}
	return steps
}

// pathOf shows the nodes of one super-step and where they led.
func pathOf(step []api.Visit) string {
	parts := make([]string, len(step))
	for i, v := range step {
		parts[i] = v.Node
		if v.Undoes != "" {
			parts[i] += " (undoes " + v.Undoes + ")"
		}
		switch {
		case v.Waiting:
			parts[i] += " waits"
		case v.Error == event.Interrupted:
			parts[i] += " interrupted"
		case v.Failed:
			parts[i] += " FAILED"
		}
		if v.Canceled {
			parts[i] += " canceled"
		}
		if len(v.Targets) > 0 {
			parts[i] += " -> " + strings.Join(v.Targets, ", ")
		}
	}
	return strings.Join(parts, "; ")
}

// showState prints the state of a run as JSON.
func (c *command) showState(ctx context.Context, store run.Store) error {
	cp, err := store.Checkpoint(ctx, c.opts.value, c.opts.shownStep())
	if err != nil {
		return err
	}
	info, err := store.Info(ctx, c.opts.value)
	if err != nil {
		return err
	}
	secrets, err := run.SecretsOf(ctx, store, info)
	if err != nil {
		return err
	}
	return c.printState(summary.State(info, cp, secrets))
}

// printState prints a state as JSON. On standard error stand the counts of the run's loops and what comes next.
func (c *command) printState(s api.RunState) error {
	v, err := value.ParseJSON(s.State)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(c.Out, string(escape([]byte(v.Lines())))); err != nil || c.opts.quiet {
		return err
	}
	row := func(name string, parts []string) {
		if len(parts) > 0 {
			fmt.Fprintln(c.Err, text.Printable(name+": "+strings.Join(parts, ", ")))
		}
	}
	var visits, loops []string
	for _, node := range slices.Sorted(maps.Keys(s.Visits)) {
		visits = append(visits, fmt.Sprintf("%s %d", node, s.Visits[node]))
	}
	for _, l := range s.Loops {
		count := strconv.Itoa(l.Taken)
		if l.Max > 0 {
			count = fmt.Sprintf("%d of %d", l.Taken, l.Max)
		}
		loops = append(loops, l.Edge+" "+count)
	}
	row("visits", visits)
	row("loops", loops)
	row("next", s.Next)
	return nil
}

// diffStates prints how the states of two steps differ.
func (c *command) diffStates(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		var states [2]graph.State
		for i, which := range c.opts.diff[0] {
			id, step, err := parseRunStep(which)
			if err != nil {
				return err
			}
			cp, err := store.Checkpoint(ctx, id, step)
			if err != nil {
				return err
			}
			h, err := store.History(ctx, id)
			if err != nil {
				return err
			}
			secrets, err := run.SecretsOf(ctx, store, h.Info)
			if err != nil {
				return err
			}
			states[i] = secrets.State(cp.State)
		}
		return c.printChanges(summary.Changes(states[0], states[1]))
	})
}

// printChanges prints how two states differ.
func (c *command) printChanges(changes []api.Change) error {
	var b strings.Builder
	write := func(kind byte, key string, value []byte) {
		if value == nil {
			return
		}
		line := text.Printable(fmt.Sprintf("%c %s: %s", kind, key, cut(string(value), maxText)))
		if c.outColor() {
			line = text.PaintDiffLine(kind, line)
		}
		b.WriteString(line + "\n")
	}
	for _, d := range changes {
		write(text.Removed, d.Key, d.Before)
		write(text.Added, d.Key, d.After)
	}
	return c.print(changes, b.String())
}

// pruneRuns deletes runs that have ended. Runs that work or wait are left alone.
func (c *command) pruneRuns(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		infos, err := store.Runs(ctx, run.Query{})
		if err != nil {
			return err
		}
		old := time.Duration(0)
		if c.opts.older != "" {
			old, _ = parseAge(c.opts.older) // checked with the flags
		}
		rule := bulk.Retention{Done: old, Failed: old, Keep: c.opts.keep}
		if c.opts.older == "" && c.opts.where == "" && !c.opts.flags.Changed("keep") {
			if c.app.Config.Retention == nil {
				return fault.New(fault.Usage, "flag --runs-prune needs --older TIME, --keep N, --where EXPR or several of them, or retention in the configuration").
					WithHint("see first what it would forget: loki --runs-prune --older 30d --dry-run")
			}
			rule = *c.app.Config.Retention
		}
		filter, err := bulk.ParseFilter(c.opts.where, time.Now())
		if err != nil {
			return err
		}
		ids, waiting, err := rule.Pick(infos, filter)
		if err != nil {
			return err
		}
		if c.opts.where != "" && !c.opts.dryRun && len(ids) > 0 {
			if agreed, err := c.agrees(ctx, "Forget "+text.Count(len(ids), "run")+"?"); err != nil || !agreed {
				return err
			}
		}
		verb, pruneErr := "forgot", error(nil)
		if c.opts.dryRun {
			verb = "would forget"
		} else {
			ids, pruneErr = store.Delete(ctx, ids...)
			pruneErr = errors.Join(pruneErr, c.prunePlans(ctx, store))
		}
		if c.opts.output != outputText {
			return errors.Join(pruneErr, printJSON(c.Out, append([]string{}, ids...)))
		}
		for _, id := range ids {
			fmt.Fprintln(c.Out, id)
		}
		fmt.Fprintf(c.Err, "%s %s of %d\n", verb, text.Count(len(ids), "run"), len(infos))
		if waiting > 0 {
			fmt.Fprintf(c.Err, "kept %s at work, suspended or interrupted\n", text.Count(waiting, "run"))
		}
		return pruneErr
	})
}

// prunePlans removes the plans that no run belongs to any more.
func (c *command) prunePlans(ctx context.Context, store run.Store) error {
	left, err := store.Runs(ctx, run.Query{})
	if err != nil {
		return err
	}
	removed, err := c.app.Planner().Prune(left)
	if removed > 0 {
		fmt.Fprintf(c.Err, "removed %s that no run belongs to\n", text.Count(removed, "plan"))
	}
	return err
}

func checkAge(text string) error {
	_, err := parseAge(text)
	return err
}

// maxDays is about how many days a time.Duration holds.
const maxDays = 100_000

// parseAge reads a time span: a number of days as 30d, or what time.ParseDuration
// reads.
func parseAge(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("a time such as 30d, 12h or 90m is expected")
	}
	return d, nil
}
