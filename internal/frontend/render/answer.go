package render

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// AnswerOptions configure NewAnswer.
type AnswerOptions struct {
	Out      io.Writer // where the answer goes; required
	Terminal bool      // Out is a terminal, the one of the screen if that is a terminal too
	Quiet    bool      // no spinner, no reasoning and no usage
	Usage    bool      // a line below a single answer on the screen says what it used
	Replies  bool      // the narrator does so for each reply, so that an answer of one reply needs no other line

	// Sources has the passages that a single answer was given from listed below it on the screen; nil
	// for no list.
	Sources *SourceOptions

	// Markdown says how the answer is drawn if Out is a terminal. Nil means that it is
	// written as it comes, as it always is elsewhere.
	Markdown *MarkdownOptions
}

// Answer writes the answer to Out: a model's own while it arrives, and the output of a
// graph run when it ends. Either ends with a line feed, and an answer of no characters
// prints nothing. What models say within the nodes of a graph, or as child agents, is
// not printed.
//
// If the screen is a terminal, a spinner turns there until the answer begins, and the
// model's reasoning is shown, dimmed or, without color, behind bars; elsewhere reasoning
// is dropped.
//
// On a terminal the answer is drawn as Markdown if the options say so. Control characters
// in it are shown, not obeyed. Text may wait for 50 ms, in a goroutine that the screen's Close
// waits for.
type Answer struct {
	screen *Screen
	o      AnswerOptions
	sink   *sink // draws the answer; nil if it is written as it comes
	clean  text.Filter

	// What follows is guarded by screen.mu.
	printed  bool            // something was, since the answer began
	open     bool            // Out stands inside a line
	turn     strings.Builder // the text of the current model call
	thinking bool            // reasoning was shown last
	busy     *task           // the spinner; nil while there is none
	calls    int             // tools at work
	working  bool            // a run has begun and not ended
	graph    bool            // it is the answer of a graph run
	last     chat.Usage      // of the last reply
	spent    chat.Usage      // of all replies since the answer began

	found *event.Retrieved // for the answer; nil if nothing was searched
}

// NewAnswer returns an Answer beside screen. In an event.Tee it comes after the Narrator,
// so that the last line of the narration comes before the output of the run.
func NewAnswer(screen *Screen, o AnswerOptions) *Answer {
	a := &Answer{screen: screen, o: o}
	if o.Terminal && o.Markdown != nil {
		a.sink = screen.newSink(o.Out, *o.Markdown)
	}
	return a
}

// Emit prints what ev adds to the answer. The error is that of Out.
func (a *Answer) Emit(_ context.Context, ev event.Event) error {
	if ev.Depth != 0 || ev.Node != "" {
		return nil
	}
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	switch body := ev.Body.(type) {
	case event.Started:
		a.printed, a.open, a.thinking, a.calls = false, false, false, 0
		a.turn.Reset()
		a.working = true
		a.graph, a.last, a.spent = body.Graph != "", chat.Usage{}, chat.Usage{}
		if body.Graph == "" {
			a.spin("Generating")
		}
	case event.Reasoning:
		a.reason(body.Text)
	case event.Delta:
		a.turn.WriteString(body.Text)
		return a.print(body.Text)
	case event.Reply:
		a.last, a.spent = body.Usage, a.spent.Add(body.Usage)
		return a.reply(body)
	case event.Retrieved:
		a.found = &body
	case event.CompressionStarted:
		a.spin("Compressing")
	case event.ServersStarting:
		a.spin("Starting MCP servers " + joinComma(body.Servers))
	case event.CompressionFinished, event.ServersStarted:
		if a.working {
			a.spin("Generating")
		} else {
			a.rest()
		}
	case event.Plan:
		if body.State == "proposed" {
			a.rest()
			err := a.endLine()
			a.printed = false // the plan is the output
			return err
		}
	case event.ToolCall:
		a.calls++
		a.spin(oneLine(body.Name, shortLimit))
	case event.ToolResult:
		if a.calls--; a.calls <= 0 {
			a.spin("Generating")
		}
	case event.Limited:
		if !a.graph && body.Reason == "spending" && body.Waited == 0 {
			a.spin("Waiting for other calls, because a limit of spending has no room beside them")
		} else if !a.graph && body.Until.Sub(ev.Time) >= time.Second {
			a.spin("Waiting for " + oneLine(body.Client, nameLimit) + ", which takes no more calls now")
		}
	case event.Retry:
		a.turn.Reset() // what was printed cannot be taken back, but is set off
		err := a.endLine()
		a.spin("Generating")
		return err
	case event.Finished:
		a.working = false
		err := a.finish(body.Output)
		if body.Error == "" {
			a.showSources()
		}
		a.found = nil
		a.showUsage(body.Usage)
		return err
	}
	return nil
}

// showUsage shows below a single answer what it used.
func (a *Answer) showUsage(u chat.Usage) {
	if !a.o.Usage || a.o.Quiet || a.graph || u.Total() == 0 || a.o.Replies && u == a.last {
		return
	}
	a.screen.show(colors(a.screen.o.Color).paint(dim, "▸ "+tokens(u)) + "\n")
}

// showSources lists below a single answer what it was given from.
func (a *Answer) showSources() {
	if a.o.Sources == nil || a.o.Quiet || a.found == nil {
		return
	}
	on := colors(a.screen.o.Color)
	if len(a.found.Sources) == 0 {
		a.screen.show(on.paint(dim, "▸ nothing in knowledge base "+oneLine(a.found.Base, nameLimit)+" belongs to the question") + "\n")
		return
	}
	o := *a.o.Sources
	o.Terminal.Hyperlinks = o.Terminal.Hyperlinks && a.screen.o.Terminal
	text := "\nSources\n" + strings.Join(o.Sources(a.found.Sources), "\n")
	a.screen.show(on.paintLines(dim, text) + "\n")
}

// Close ends a line that is open and stops the spinner, for an answer that was cut off
// without a Finished event.
func (a *Answer) Close() error {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.rest()
	err := a.endLine()
	if a.sink != nil {
		err = cmp.Or(err, a.sink.err)
	}
	return err
}

// reply prints the text of a turn that did not arrive in pieces: all of it if the model
// does not stream or its reply was on record.
func (a *Answer) reply(b event.Reply) error {
	missing, ok := strings.CutPrefix(b.Text, a.turn.String())
	a.turn.Reset()
	if ok {
		if err := a.print(missing); err != nil {
			return err
		}
	}
	a.rest()
	return a.endLine() // texts of several turns stand on lines of their own
}

func (a *Answer) finish(output string) error {
	a.rest()
	if !a.printed && strings.Trim(output, "\n") != "" {
		if err := a.print(strings.TrimRight(output, "\n")); err != nil {
			return err
		}
	}
	return a.endLine()
}

// print writes text to Out.
func (a *Answer) print(text string) error {
	if a.o.Terminal && a.sink == nil {
		text = string(a.clean.Append(nil, []byte(text)))
	}
	if text == "" {
		return nil
	}
	a.rest()
	if a.thinking {
		a.thinking = false
		a.endReasoning()
	}
	a.printed = true
	if a.sink != nil {
		err := a.sink.add([]byte(text))
		a.open = true
		return err
	}
	a.open = lastByte(text) != '\n'
	return a.write(text)
}

// endLine writes a line feed if Out stands inside a line.
func (a *Answer) endLine() error {
	if a.thinking {
		a.thinking = false
		a.endReasoning()
	}
	if !a.open {
		return nil
	}
	a.open = false
	if a.sink != nil {
		return a.sink.end()
	}
	if rest := a.clean.Flush(nil); len(rest) > 0 {
		if err := a.write(string(rest)); err != nil {
			return err
		}
	}
	if a.o.Terminal && a.screen.o.Terminal && !a.screen.midline {
		return nil // a line of the screen came between and has ended it
	}
	return a.write("\n")
}

func (a *Answer) write(text string) error {
	if a.o.Terminal {
		return a.screen.beside(a.o.Out, text)
	}
	_, err := io.WriteString(a.o.Out, text)
	return err
}

// reason shows a piece of reasoning on the screen.
func (a *Answer) reason(text string) {
	text = safe(text)
	if !a.screen.o.Terminal || a.o.Quiet || text == "" {
		return
	}
	a.rest()
	first := !a.thinking
	a.thinking = true
	if a.screen.o.Color {
		a.screen.inline(colors(true).paintLines(dim, text))
		return
	}
	if first || !a.screen.midline {
		text = "| " + text
	}
	end := ""
	if lastByte(text) == '\n' { // whether the next line begins is not known yet
		text, end = text[:len(text)-1], "\n"
	}
	a.screen.inline(strings.ReplaceAll(text, "\n", "\n| ") + end)
}

// endReasoning leaves an empty line below the reasoning.
func (a *Answer) endReasoning() {
	if a.screen.midline {
		a.screen.inline("\n")
	}
	a.screen.inline("\n")
}

// spin turns the spinner if the user can see it. It says what is done, since when, and what the
// answer has used so far.
func (a *Answer) spin(what string) {
	if a.o.Quiet || !a.screen.o.Terminal || a.open {
		return
	}
	note := ""
	if a.o.Usage && a.spent.Total() > 0 {
		note = tokens(a.spent)
	}
	if a.busy != nil {
		a.busy.key.node, a.busy.note = what, note
		return
	}
	a.busy = &task{key: taskKey{node: what}, note: note, answer: true, since: a.screen.o.Now()}
	a.screen.begin(a.busy)
}

// rest stops the spinner.
func (a *Answer) rest() {
	if a.busy == nil {
		return
	}
	a.screen.end(a.busy)
	a.busy = nil
	a.screen.show("")
}
