package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/chat"
	"loki/internal/display"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/render"
	"loki/internal/run"
	"loki/internal/text"
	"loki/internal/value"
)

// withRuns opens the store of runs for work.
func (c *command) withRuns(work func(run.Store) error) error {
	store, err := c.app.OpenRuns()
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// runInfo is a run in machine output.
type runInfo struct {
	ID          string     `json:"id"`
	Kind        run.Kind   `json:"kind,omitempty"` // empty for the run of a graph
	Agent       string     `json:"agent"`
	AgentDir    string     `json:"agent_dir"`
	Dir         string     `json:"dir"`
	Status      run.Status `json:"status"`
	Active      bool       `json:"active"` // some process is running it now
	Started     time.Time  `json:"started"`
	Updated     time.Time  `json:"updated"`
	Steps       int        `json:"steps"`
	Failures    int        `json:"failures"`
	Prompt      string     `json:"prompt"`
	Parent      string     `json:"parent,omitempty"`
	Error       string     `json:"error,omitempty"`
	Code        fault.Code `json:"code,omitempty"`
	Output      string     `json:"output,omitempty"`
	Gap         *run.Gap   `json:"gap,omitempty"` // what is not on record
	Tokens      int        `json:"tokens"`
	Cost        float64    `json:"cost"`                   // US dollars
	CostUnknown bool       `json:"cost_unknown,omitempty"` // the cost of at least one call is not in Cost
	Estimated   bool       `json:"estimated,omitempty"`
}

func newRunInfo(i run.Info) runInfo {
	return runInfo{
		ID: i.ID, Kind: i.Kind, Agent: i.Agent, AgentDir: i.AgentDir, Dir: i.Dir, Status: display.RunStatus(i), Active: i.Active,
		Started: i.Started.UTC(), Updated: i.Updated.UTC(), Steps: i.Steps, Failures: i.Failures, Prompt: i.Prompt, Parent: i.Parent,
		Error: i.Error, Code: i.Code, Output: i.Output, Gap: i.Gap, Tokens: i.Usage.Total(), Cost: i.Usage.Cost, CostUnknown: i.Usage.CostUnknown, Estimated: i.Usage.Estimated,
	}
}

// listRuns prints a table of the runs, newest first.
func (c *command) listRuns(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		infos, err := c.runsOf(ctx, store, c.opts.agent)
		if err != nil {
			return err
		}
		if c.opts.output != outputText {
			list := make([]runInfo, len(infos))
			for i, info := range infos {
				list[i] = newRunInfo(info)
			}
			return printJSON(c.Out, list)
		}
		if len(infos) == 0 {
			fmt.Fprintln(c.Err, "no run is on record")
			return nil
		}
		_, err = io.WriteString(c.Out, display.Runs(infos))
		return err
	})
}

// runsOf returns the runs of an agent, also one that is not there any more, or of a role, and
// those of all if name is empty. Those of "chat" are the chats without a role.
func (c *command) runsOf(ctx context.Context, store run.Store, name string) ([]run.Info, error) {
	if name == "" {
		return store.Runs(ctx, run.Query{})
	}
	ref, unknown := c.app.Agents.Find(name)
	if unknown != nil {
		ref.Name = name
	}
	infos, err := store.Runs(ctx, run.Query{Agent: ref.Name})
	if err == nil && len(infos) == 0 && name != string(run.ChatRun) {
		err = unknown
	}
	return infos, err
}

// runDetail is a run with its path in machine output.
type runDetail struct {
	runInfo
	Visits  []run.Visit           `json:"visits"`
	Nodes   []nodeTotal           `json:"nodes"`
	Agents  []render.AgentSummary `json:"agents,omitempty"` // of a run with child agents, each one before its children
	Pending []run.Pending         `json:"pending"`
}

// nodeTotal sums up the visits of one node.
type nodeTotal struct {
	Node    string  `json:"node"`
	Type    string  `json:"type"`
	Visits  int     `json:"visits"`
	Seconds float64 `json:"seconds"`
	Tokens  int     `json:"tokens"`
	Cost    float64 `json:"cost"`
	// CostUnknown says that the cost of at least one call is not in Cost.
	CostUnknown bool `json:"cost_unknown,omitempty"`
	Retries     int  `json:"retries"`
	Failures    int  `json:"failures"`

	usage chat.Usage
}

func nodeTotals(visits []run.Visit) []nodeTotal {
	totals := []nodeTotal{}
	for _, v := range visits {
		i := slices.IndexFunc(totals, func(t nodeTotal) bool { return t.Node == v.Node })
		if i < 0 {
			i = len(totals)
			totals = append(totals, nodeTotal{Node: v.Node, Type: string(v.Type)})
		}
		t := &totals[i]
		t.Visits++
		t.Seconds += v.Duration.Seconds()
		t.Tokens += v.Usage.Total()
		t.usage = t.usage.Add(v.Usage)
		t.Cost, t.CostUnknown = t.usage.Cost, t.usage.CostUnknown
		t.Retries += v.Retries
		if v.Failed {
			t.Failures++
		}
	}
	return totals
}

// showRun prints one run: its path, what its nodes cost, what it waits for.
func (c *command) showRun(ctx context.Context) error {
	return c.withRuns(func(store run.Store) error {
		if c.opts.state {
			return c.showState(ctx, store)
		}
		h, err := store.History(ctx, c.opts.run)
		if err != nil {
			return err
		}
		agents := agentsOf(h)
		if c.opts.output != outputText {
			return printJSON(c.Out, runDetail{newRunInfo(h.Info), append([]run.Visit{}, h.Visits...), nodeTotals(h.Visits), agents, append([]run.Pending{}, h.Pending...)})
		}
		return printRun(c.Out, h, agents)
	})
}

func printRun(w io.Writer, h run.History, agents []render.AgentSummary) error {
	i := h.Info
	var b strings.Builder
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, text)
		}
	}
	row("run", i.ID)
	if i.Kind == run.ChatRun {
		row("chat", i.Agent)
	} else {
		row("agent", i.Agent+"  "+i.AgentDir)
	}
	row("status", display.RunStatusText(i))
	if i.Gap != nil {
		row("gap", fmt.Sprintf("nothing is on record after super-step %d", i.Gap.Step))
		row("", oneLine(i.Gap.Reason))
	}
	row("started", i.Started.Local().Format(time.DateTime)+"  in "+i.Dir)
	row("forked", i.Parent)
	row("prompt", oneLine(i.Prompt))
	if i.Status != run.Suspended || len(h.Pending) == 0 { // what waits is shown below
		row("error", cut(i.Error, maxText))
	}
	used := fmt.Sprintf("%s, %s", text.Count(i.Usage.Total(), "token"), display.Cost(i.Usage))
	if i.Kind == run.GraphRun {
		used = text.Count(i.Steps, "super-step") + ", " + used
	}
	row("used", used)
	if len(h.Visits) > 0 {
		b.WriteString("\npath\n")
		for _, step := range bySteps(h.Visits) {
			fmt.Fprintf(&b, "  %3d  %s\n", step[0].Step, pathOf(step))
		}
		b.WriteString("\n")
		rows := [][]string{{"NODE", "TYPE", "VISITS", "TIME", "TOKENS", "COST", "RETRIES", "FAILURES"}}
		for _, t := range nodeTotals(h.Visits) {
			rows = append(rows, []string{
				t.Node, t.Type, strconv.Itoa(t.Visits), time.Duration(t.Seconds * float64(time.Second)).Round(time.Millisecond).String(),
				strconv.Itoa(t.Tokens), display.Cost(t.usage), strconv.Itoa(t.Retries), strconv.Itoa(t.Failures),
			})
		}
		b.WriteString(display.Table(rows, 2, 3, 4, 5, 6, 7))
	}
	if len(agents) > 0 {
		if err := printAgents(&b, agents); err != nil {
			return err
		}
	}
	if i.Output != "" {
		b.WriteString("\noutput\n" + strings.TrimRight(cut(i.Output, maxText), "\n") + "\n")
	}
	for n, p := range h.Pending {
		if n == 0 {
			b.WriteString("\nwaiting for an answer\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n", p.ID, indented(p.Text))
		if len(p.Options) > 0 {
			kind := "options"
			if p.Multi {
				kind = "any number of"
			}
			fmt.Fprintf(&b, "    %s: %s\n", kind, strings.Join(p.Options, ", "))
		}
		if !p.Deadline.IsZero() {
			fmt.Fprintf(&b, "    default from %s on\n", p.Deadline.Local().Format(time.DateTime))
		}
	}
	switch len(h.Pending) {
	case 0:
	case 1:
		fmt.Fprintf(&b, "  answer: loki --resume %s --answer TEXT\n", i.ID)
		if h.Pending[0].Multi {
			b.WriteString("    with commas between several options\n")
		}
	default:
		fmt.Fprintf(&b, "  answer: loki --resume %s --answers FILE, a YAML file with a line for each: %s: ANSWER\n", i.ID, h.Pending[0].ID)
	}
	_, err := io.WriteString(w, text.Printable(b.String()))
	return err
}

// indented returns all lines of a question for people, the first of which stands behind its name.
// The user decides by it what may be done, so nothing is left out.
func indented(question string) string {
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

// bySteps groups visits, which are in order, by their super-step.
func bySteps(visits []run.Visit) [][]run.Visit {
	var steps [][]run.Visit
	for _, v := range visits {
		if n := len(steps); n > 0 && steps[n-1][0].Step == v.Step {
			steps[n-1] = append(steps[n-1], v)
			continue
		}
		steps = append(steps, []run.Visit{v})
	}
	return steps
}

// pathOf shows the nodes of one super-step and where they led.
func pathOf(step []run.Visit) string {
	parts := make([]string, len(step))
	for i, v := range step {
		parts[i] = v.Node
		if v.Failed {
			parts[i] += " FAILED"
		}
		if len(v.Targets) > 0 {
			parts[i] += " -> " + strings.Join(v.Targets, ", ")
		}
	}
	return strings.Join(parts, "; ")
}

// showState prints the state of a run as JSON.
func (c *command) showState(ctx context.Context, store run.Store) error {
	cp, err := store.Checkpoint(ctx, c.opts.run, c.opts.step)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, string(escape([]byte(cp.State.Object().Value().Lines()))))
	return err
}

// stateDiff is how two states differ, in machine output.
type stateDiff struct {
	Key    string       `json:"key"`
	Before *value.Value `json:"before,omitempty"`
	After  *value.Value `json:"after,omitempty"`
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
			states[i] = cp.State
		}
		diffs := diffOf(states[0], states[1])
		if c.opts.output != outputText {
			return printJSON(c.Out, diffs)
		}
		var b strings.Builder
		for _, d := range diffs {
			if d.Before != nil {
				fmt.Fprintf(&b, "- %s: %s\n", d.Key, cut(d.Before.String(), maxText))
			}
			if d.After != nil {
				fmt.Fprintf(&b, "+ %s: %s\n", d.Key, cut(d.After.String(), maxText))
			}
		}
		_, err := io.WriteString(c.Out, text.Printable(b.String()))
		return err
	})
}

func diffOf(before, after graph.State) []stateDiff {
	diffs := []stateDiff{}
	for _, m := range before.Changes(after) {
		d := stateDiff{Key: m.Name, After: &m.Value}
		if old, ok := before.Get(m.Name); ok {
			d.Before = &old
		}
		diffs = append(diffs, d)
	}
	for key, v := range before.All() {
		if _, ok := after.Get(key); !ok {
			diffs = append(diffs, stateDiff{Key: key, Before: &v})
		}
	}
	slices.SortFunc(diffs, func(a, b stateDiff) int { return cmp.Compare(a.Key, b.Key) })
	return diffs
}

// pruneRuns forgets runs that have ended. Those that work or wait are left alone.
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
		var ids []string
		waiting := 0
		for i, info := range infos { // newest first
			switch {
			case i < c.opts.keep || time.Since(info.Updated) < old:
			case info.Active || !info.Status.Over():
				waiting++
			default:
				ids = append(ids, info.ID)
			}
		}
		verb, pruneErr := "forgot", error(nil)
		if c.opts.dryRun {
			verb = "would forget"
		} else {
			ids, pruneErr = store.Delete(ctx, ids...)
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
