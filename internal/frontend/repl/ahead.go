package repl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command"
	"loki/internal/frontend/repl/line"
	"loki/internal/llm/event"
)

// Limits of what waits while the program works.
const (
	maxQueued      = 20
	maxQueuedBytes = 64 << 10
)

// queue has the lines that the user entered while the program works, and the one that they are typing.
type queue struct {
	mu     sync.Mutex // guards what follows
	lines  []string
	held   bool // no line is run by itself: each returns to the input
	draft  string
	cursor int
}

// next takes the first line, to be run.
func (q *queue) next() (text string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held {
		return "", false
	}
	return q.first()
}

// first takes the first line.
func (q *queue) first() (text string, ok bool) {
	if len(q.lines) == 0 {
		return "", false
	}
	text, q.lines = q.lines[0], q.lines[1:]
	q.held = q.held && len(q.lines) > 0
	return text, true
}

// hold has each line return to the input from now on: texts first, then the waiting ones. It returns how many there are.
func (q *queue) hold(texts []string) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines = append(texts, q.lines...)
	q.held = len(q.lines) > 0
	return len(q.lines)
}

// back takes the first line that returns to the input, "" for none. Draft is a line that was not finished. It is the last to return.
func (q *queue) back(draft func() string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.held {
		return ""
	}
	if text := draft(); text != "" {
		q.lines = append(q.lines, text)
	}
	text, _ := q.first()
	return text
}

// rest takes all lines.
func (q *queue) rest() (lines []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, q.lines = q.lines, nil
	return lines
}

// last takes the last line back, "" for none.
func (q *queue) last() (text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.lines); n > 0 {
		text, q.lines = q.lines[n-1], q.lines[:n-1]
	}
	return text
}

// add adds a line. It reports false if there is no room.
func (q *queue) add(text string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(text)
	for _, line := range q.lines {
		size += len(line)
	}
	if len(q.lines) == maxQueued || size > maxQueuedBytes {
		return false
	}
	q.lines = append(q.lines, text)
	return true
}

// noteTyping notes the line that the user is typing.
func (q *queue) noteTyping(text string, cursor int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.draft, q.cursor = text, cursor
}

// Command does what .queue is for.
func (q *queue) Command(args string) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	verb, rest, _ := strings.Cut(args, " ")
	n, err := strconv.Atoi(strings.TrimSpace(rest))
	switch {
	case args == "clear":
		q.lines = nil
	case verb == "drop" && err == nil && n >= 1 && n <= len(q.lines):
		q.lines = slices.Delete(q.lines, n-1, n)
	case verb == "drop":
		return "", fault.New(fault.Usage, "the queue has no line %q", rest).WithHint("list it: .queue")
	case args != "":
		return "", fault.New(fault.Usage, "%q is not known", verb).WithHint(".queue, .queue drop N or .queue clear")
	}
	if len(q.lines) == 0 {
		return "The queue is empty.", nil
	}
	var b strings.Builder
	for i, line := range q.lines {
		fmt.Fprintf(&b, "%2d  %s\n", i+1, text.OneLine(line, 200))
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// displayLines returns the lines below what works, in so many columns: the waiting ones, and the one being typed, with a mark at the cursor.
func (q *queue) displayLines(steering []string, columns int) (lines []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range steering {
		lines = append(lines, "» "+line)
	}
	const most = 5
	for i, line := range q.lines {
		if i == most {
			lines = append(lines, fmt.Sprintf("  %d more: .queue", len(q.lines)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, line))
	}
	if q.draft == "" {
		return lines
	}
	before := strings.ReplaceAll(q.draft[:q.cursor], "\n", "⏎ ")
	if wide := ansi.StringWidth(before) - max(columns-10, 10); wide > 0 {
		before = ansi.TruncateLeft(before, wide, "…")
	}
	return append(lines, "> "+before+"▏"+strings.ReplaceAll(q.draft[q.cursor:], "\n", "⏎ "))
}

// atOnce are the commands that run while something else works. They change nothing of a conversation.
var atOnce = []string{".jobs", ".info", ".usage", ".help", ".queue"}

// ahead is what happens to lines that are typed while ctx works.
func (r *repl) ahead(ctx context.Context) line.Ahead {
	looks := r.console.Beside(beside{printer{r}})
	return line.Ahead{
		End: func() bool {
			r.mu.Lock()
			r.leave = true
			r.mu.Unlock()
			r.interrupt()
			return true
		},
		Submit: func(text string, now bool) bool { return r.later(ctx, looks, text, now) },
		Recall: func() string { return cmp.Or(r.queue.last(), r.conv.Unsteer(ctx)) },
		Show: func(text string, cursor int) {
			r.queue.noteTyping(text, cursor)
			r.showAhead()
		},
	}
}

// showAhead shows what waits below what works.
func (r *repl) showAhead() {
	r.screen.Below(r.queue.displayLines(r.conv.UnreadSteering(), r.columns()))
}

// heard is an emitter that shows when the model has read what the user sent.
func (r *repl) heard(_ context.Context, ev event.Event) error {
	if _, ok := ev.Body.(event.Steered); ok {
		r.showAhead()
	}
	return nil
}

// later takes a line that the user entered while something works. Looks runs what only looks. It reports false if the line stays where it is.
func (r *repl) later(ctx context.Context, looks *command.Console, text string, now bool) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case name == "":
		return true
	case slices.Contains(atOnce, name):
		if err := looks.Do(ctx, text); err != nil {
			r.warn(err.Error())
		}
		return true
	case now && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "!"):
		if r.conv.Steer(ctx, strings.TrimSpace(text)) == nil {
			r.history.Add(ctx, text) // a line that waits is not lost if the program is killed
			return true
		} // else it waits for its turn
	}
	if !r.queue.add(text) {
		r.warn(fmt.Sprintf("the queue is full: it takes %d lines of %d KiB in all; .queue drop N makes room", maxQueued, maxQueuedBytes>>10))
		return false
	}
	r.history.Add(ctx, text)
	return true
}

// beside prints results above what works.
type beside struct{ printer }

// Print implements [command.Output].
func (b beside) Print(text string) {
	for line := range strings.Lines(text) {
		b.r.screen.Print(b.r.app.Hide(strings.TrimSuffix(line, "\n")))
	}
}

// Colored implements [command.Output].
func (b beside) Colored(text string) { b.Print(text) }

// Markdown implements [command.Output].
func (b beside) Markdown(text string) { b.Print(text) }

var _ command.Output = beside{}
