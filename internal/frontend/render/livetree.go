package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// frameOfRow is how long the spinner of a row of the tree stands still: there are many.
const frameOfRow = 2 * frameTime

// widestRow bounds the columns of a row: on a wide terminal the eye has to find its end.
const widestRow = 120

// narrowColumns is the width of a terminal below which rows leave out what can be spared.
const narrowColumns = 57

// treeRow is a line of the live area about an agent.
type treeRow struct {
	indent       int // columns
	mark         string
	style        style  // of mark
	name, number string // of the agent, and what tells it from others of that name: critic, -2
	doing        string
	time         string
	tokens, cost string
	over         bool   // the agent does not work any more
	asks         bool   // it waits for an answer
	whole        string // instead of all but the mark: the line of a node
}

// working reports whether there is anything to draw that changes by itself.
func (t *Tree) working() bool {
	return t != nil && t.root != nil && t.root.Outcome == "" && (len(t.root.Children) > 0 || len(t.root.todo.Todos) > 0)
}

// lines returns the live area of a run with child agents or a todo list, at most room lines of
// so many columns. What nodes of the root's graph do is in tasks.
func (t *Tree) lines(on colors, tasks []*task, now time.Time, columns, room int) []liveLine {
	columns = min(columns, widestRow)
	var lines []liveLine
	if todo := t.root.todo; len(todo.Todos) > 0 && room > 2 {
		lines = todoLines(on, todo, columns, room/3)
		room -= len(lines)
	}
	sum := ""
	if room > 2 {
		sum = t.sum()
	}
	if sum != "" {
		room--
	}
	rows := t.rows(tasks, now, columns)
	folded := ""
	if len(rows) > room {
		rows, folded = fold(rows, room)
	}
	lines = append(lines, layRows(on, rows, columns)...)
	for _, text := range []string{folded, sum} {
		if text != "" {
			lines = append(lines, newLiveLine(on, columns, span{dim, "  " + text}))
		}
	}
	return lines
}

// rows returns a row for each agent and node whose end was not shown.
func (t *Tree) rows(tasks []*task, now time.Time, columns int) []treeRow {
	var rows []treeRow
	brief := columns < narrowColumns
	shown := make(map[string]bool) // nodes
	if !t.root.graph && len(t.root.Children) > 0 {
		rows = append(rows, t.root.row(t, now, 0, brief))
	}
	for _, k := range tasks {
		switch {
		case k.key.agentID != "" || k.answer && len(rows) > 0: // their agents have rows
			continue
		case now.Sub(k.since) < showAfter:
			continue
		}
		rows = append(rows, treeRow{mark: spin(now.Sub(k.since), frameTime), style: cyan, whole: k.line(now, columns-1-2)})
		if !k.answer && !shown[k.key.node] {
			shown[k.key.node] = true
			rows = t.childRows(rows, t.root, now, len(k.indent), brief, func(m *Member) bool { return m.Node == k.key.node })
		}
	}
	return t.childRows(rows, t.root, now, 0, brief, func(m *Member) bool { return !shown[m.Node] })
}

// childRows appends the rows of the children of m for which which returns true, and of theirs.
func (t *Tree) childRows(rows []treeRow, m *Member, now time.Time, indent int, brief bool, which func(*Member) bool) []treeRow {
	for _, child := range m.Children {
		if which != nil && !which(child) {
			continue
		}
		if !child.settled {
			rows = append(rows, child.row(t, now, indent+2*child.Depth, brief))
		}
		rows = t.childRows(rows, child, now, indent, brief, nil)
	}
	return rows
}

// row returns the row of m, with less of what it is doing if brief is set.
func (m *Member) row(t *Tree, now time.Time, indent int, brief bool) treeRow {
	r := treeRow{
		indent: indent, name: oneLine(m.Agent, nameLimit), number: m.Name[len(m.Agent):], tokens: compact(m.Own.Total()), cost: Dollars(m.Own),
		over: m.Outcome != "",
	}
	if r.over {
		r.mark, r.style = "✓", green
		r.doing, r.time = outcomeWords(m.Outcome), coarse(m.Duration)
		if m.Outcome != doneOutcome {
			r.mark, r.style = "✗", red
			if m.Error != "" && m.Outcome != canceledOutcome {
				r.doing += ": " + oneLine(m.Error, failureLimit)
			}
		}
		return r
	}
	at := max(0, now.Sub(m.Start))
	r.mark, r.style, r.doing, r.time = spin(at, frameOfRow), cyan, m.activity(t, brief), coarse(at)
	switch {
	case len(m.asks) > 0:
		r.mark, r.style, r.asks = "?", yellow, true
	case len(m.waits) > 0:
		r.mark, r.style = "…", dim
	}
	if len(m.todo.Todos) > 0 && m.ID != "" {
		r.doing = fmt.Sprintf("[%d/%d] %s", m.todo.DoneCount(), len(m.todo.Todos), r.doing)
	}
	return r
}

// fold makes do with room lines, one of them for what it returns as text: the rows of finished
// agents go first, the oldest of them before the others, and then the last ones. Agents that wait
// for an answer go last.
func fold(rows []treeRow, room int) (kept []treeRow, text string) {
	room = max(0, room-1)
	over, more := 0, 0
	for _, r := range rows {
		if r.over && len(rows)-over > room {
			over++
			continue
		}
		kept = append(kept, r)
	}
	for i := len(kept) - 1; i >= 0 && len(kept) > room; i-- {
		if !kept[i].asks {
			kept = slices.Delete(kept, i, i+1)
			more++
		}
	}
	if len(kept) > room {
		more += len(kept) - room
		kept = kept[:room]
	}
	var parts []string
	if more > 0 {
		parts = append(parts, Thousands(more)+" more running")
	}
	if over > 0 {
		parts = append(parts, Thousands(over)+" finished")
	}
	text = strings.Join(parts, ", ")
	if room > 0 {
		text = "+" + text
	}
	return kept, text
}

// layRows lays rows out in columns: names, what the agents do, and on the right time, tokens and
// cost. A narrow terminal leaves out cost, then tokens.
func layRows(on colors, rows []treeRow, columns int) []liveLine {
	columns-- // the last one stays free
	var names, costs int
	times, tokens := 5, 6 // as a rule, so that what stands before them does not move
	if columns < narrowColumns {
		times, tokens = 0, 0
	}
	for _, r := range rows {
		if r.whole == "" {
			names = max(names, r.indent+width(r.name)+width(r.number))
			times, tokens, costs = max(times, width(r.time)), max(tokens, width(r.tokens)), max(costs, width(r.cost))
		}
	}
	widest := columns / 4 // name
	if columns < narrowColumns {
		widest = max(6, columns/3)
		costs = 0
	}
	names = min(names, widest)
	if columns < 32 {
		tokens = 0
	}
	right := 0
	for _, w := range []int{times, tokens, costs} {
		if w > 0 {
			right += w + 2
		}
	}
	doing := max(0, columns-2-names-2-right)
	lines := make([]liveLine, len(rows))
	for i, r := range rows {
		if r.whole != "" {
			lines[i] = newLiveLine(on, columns+1, span{r.style, r.mark}, span{dim, " " + r.whole})
			continue
		}
		indent := min(r.indent, names/2)
		name := clip(r.name, max(1, names-indent-width(r.number))) + r.number
		end := "  " + padLeft(r.time, times)
		if tokens > 0 {
			end += "  " + padLeft(r.tokens, tokens)
		}
		if costs > 0 {
			end += "  " + padLeft(r.cost, costs)
		}
		lines[i] = newLiveLine(
			on, columns+1, span{plain, strings.Repeat(" ", indent)}, span{r.style, r.mark}, span{plain, " " + pad(name, names-indent)},
			span{dim, "  " + pad(r.doing, doing) + end},
		)
	}
	return lines
}

// sum returns how many children there are and what all agents used, "" for fewer than two.
func (t *Tree) sum() string {
	if len(t.byID) < 2 {
		return ""
	}
	counts := make(map[string]int) // by outcome
	total := chat.Usage{}
	for m := range t.All() {
		total = total.Add(m.Own)
		if m != t.root {
			counts[m.Outcome]++
		}
	}
	var parts []string
	for _, outcome := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	}) {
		parts = append(parts, Thousands(counts[outcome])+" "+cmp.Or(outcomeWords(outcome), "running"))
	}
	if n := total.Total(); n > 0 {
		parts = append(parts, compact(n)+" tokens")
	}
	if cost := Dollars(total); cost != "" {
		parts = append(parts, cost)
	}
	return strings.Join(parts, ", ")
}

// rank puts agents at work first, then the finished ones.
func rank(outcome string) int {
	switch outcome {
	case "":
		return 0
	case doneOutcome:
		return 1
	}
	return 2
}

// outcomeWords returns an outcome as people read it: out of budget.
func outcomeWords(outcome string) string {
	return strings.ReplaceAll(oneLine(outcome, nameLimit), "_", " ")
}

// todoLines returns a todo list in at most room lines: how much is done, and the items
// around the first open one.
func todoLines(on colors, b event.TodoUpdated, columns, room int) []liveLine {
	head := todoHead(b)
	if b.Goal != "" {
		head += "  " + oneLine(b.Goal, shortLimit)
	}
	lines := []liveLine{newLiveLine(on, columns, span{plain, head})}
	first := slices.IndexFunc(b.Todos, func(todo event.Todo) bool { return !todo.Done })
	if first < 0 {
		first = len(b.Todos)
	}
	room = min(room-1, len(b.Todos))
	from := min(max(0, first-1), len(b.Todos)-room)
	for _, todo := range b.Todos[from : from+room] {
		mark, text := todoItem(todo)
		st := plain
		if todo.Done {
			st = green
		}
		lines = append(lines, newLiveLine(on, columns, span{st, "  " + mark}, span{dim, " " + text}))
	}
	return lines
}

// todoHead says how much of a todo list is done: todo 2/5.
func todoHead(b event.TodoUpdated) string {
	return fmt.Sprintf("todo %d/%d", b.DoneCount(), len(b.Todos))
}

// todoItem returns the mark of an item and what it says.
func todoItem(todo event.Todo) (mark, text string) {
	mark = "○"
	if todo.Done {
		mark = "✓"
	}
	return mark, oneLine(todo.Desc, failureLimit)
}

// spin returns the frame of the spinner of something that has run for so long.
func spin(d, frame time.Duration) string {
	i := int(d/frame) % (len(spinner) / 3)
	return spinner[3*i : 3*i+3]
}

// compact writes a number of tokens, which is not negative, in few characters: 900, 41.2k,
// 1.3M. It is empty for 0.
func compact(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 1000:
		return strconv.Itoa(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// coarse writes how long an agent has been at work: 4s, 1m05s, 2h03m.
func coarse(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return elapsedText(d)
}

// pad returns s in so many columns.
func pad(s string, columns int) string {
	s = clip(s, columns)
	return s + strings.Repeat(" ", max(0, columns-width(s)))
}

// padLeft returns s, which is not wider, at the right of so many columns.
func padLeft(s string, columns int) string {
	return strings.Repeat(" ", max(0, columns-width(s))) + s
}
