package ask

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"loki/internal/base/text"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// screen is what a widget knows about the terminal.
type screen struct {
	width, rows int      // rows is 0 if that is not known
	printed     []string // the lines of the question above the widget, with styles
	begins      []string // the ones that are shown again if they do not fit on the screen
}

// askWidget draws a list or a text field for q and returns the answer, which replaces it on the screen. text is printed above it,
// with the first frame, and single reports whether the answer is a letter or digit without Enter.
func askWidget(ctx context.Context, q *Question, k *keyboard, out *os.File, environ []string, text string, s screen) (answer string, single bool, err error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w := newWidget(q, s)
	if w.list != nil {
		w.list.early = k.wary > 0
	}
	canvas := &canvas{File: out, before: text, shown: make(chan struct{}), first: func() error { return k.markShown(own) }}
	p := tea.NewProgram(w, tea.WithInput(nil), tea.WithOutput(canvas), tea.WithContext(own),
		tea.WithEnvironment(environ), tea.WithoutSignalHandler(), tea.WithFilter(refuseSizeRequests))
	// A program whose own context ends leaves its view on the screen. So it gets a
	// message to end.
	notified := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(notified)
		p.Send(giveUp{errors.Is(context.Cause(ctx), ErrElsewhere)})
	})
	var failed error
	pressed := make(chan struct{})
	go func() { // ends with the program, whose end cancels own
		defer close(pressed)
		select {
		case <-canvas.shown:
			if failed = canvas.err; failed == nil {
				failed = press(own, p, k)
			}
			if failed != nil && own.Err() == nil {
				p.Send(giveUp{})
			}
		case <-own.Done():
		}
	}()
	_, err = p.Run()
	cancel()
	<-pressed
	if !stop() {
		<-notified
	}
	if failed != nil && !errors.Is(failed, context.Canceled) {
		err = fmt.Errorf("the terminal was closed: %w: %w", ErrUnavailable, failed)
	}
	if err != nil {
		return "", false, err
	}
	if _, err := io.WriteString(out, w.trim()); err != nil {
		return "", false, err
	}
	if !w.answered {
		return "", false, context.Canceled
	}
	return w.answer(), w.form == nil && w.list.single, nil
}

// press passes keys to a program, each when the one before it was acted upon, until one has ended it. What was typed after
// that stays in the keyboard.
func press(ctx context.Context, p *tea.Program, k *keyboard) error {
	var text [][]byte // the keys of the last text
	for again := false; ; {
		event, err := k.next(ctx)
		if err != nil {
			return err
		}
		reply := make(chan reaction, 1)
		switch event := event.(type) {
		case uv.KeyPressEvent:
			p.Send(typed{tea.KeyPressMsg(event), reply})
		case uv.PasteEvent:
			p.Send(typed{tea.PasteMsg(event), reply})
		case uv.ModeReportEvent:
			p.Send(tea.ModeReportMsg(event))
			continue
		case counts:
			p.Send(helped{again})
			continue
		case hesitated:
			p.Send(typed{event, reply})
		default:
			continue
		}
		select {
		case r := <-reply:
			unit := eventText(event)
			if text = append(text, unit); len(unit) == 0 {
				text = nil
			}
			switch r {
			case ended:
				return nil
			case alone:
				k.alone = time.Now().Add(hesitation)
			case refused:
				for _, unit := range text {
					k.putAside(unit)
				}
				text, again = nil, true
				k.beWary()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// typed is the message of a key or a paste. The reaction to it is sent to reply, which has room for it.
type typed struct {
	msg   tea.Msg
	reply chan<- reaction
}

// reaction is what a widget does upon a key.
type reaction int

const (
	taken   reaction = iota
	alone            // it is the answer if no key follows it
	refused          // it answers nothing, and what is typed without a pause after it must not, either
	ended            // it was the last one
)

// helped is the message that keys count, perhaps again, after one that was refused.
type helped struct{ again bool }

// canvas is a terminal to draw on, whose first frame is the moment at which a question appears.
type canvas struct {
	*os.File
	before string
	first  func() error
	shown  chan struct{} // closed when the question is on the screen
	err    error         // of first; read after shown is closed
}

// Write implements [io.Writer]. One goroutine draws at a time.
func (c *canvas) Write(p []byte) (int, error) {
	data := p
	if c.first != nil {
		c.err, c.first = c.first(), nil
		data = append([]byte(c.before), p...)
		defer close(c.shown)
	}
	if runtime.GOOS != "windows" { // the terminal does not do it in raw mode
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	if _, err := c.File.Write(data); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refuseSizeRequests drops the request for the window's size with which a form
// begins. The program sends the size anyway. For a request it starts a goroutine
// that it does not wait for, and that may use the terminal after it was closed.
func refuseSizeRequests(_ tea.Model, msg tea.Msg) tea.Msg {
	if msg == tea.RequestWindowSize() {
		return nil
	}
	return msg
}

// giveUp is the message that the caller does not wait for the answer any more.
type giveUp struct {
	elsewhere bool // the question was answered in another place
}

// widget is a list to choose from, a field to type in, or the one and then the other.
type widget struct {
	q        *Question
	screen   screen
	page     int       // the number of the page of the question that is shown again, 0 if none is
	list     *list     // nil without one
	form     *huh.Form // the field; nil while the list is used
	typed    string
	answered bool
	over     bool // it was answered, the user has left, or the caller has given up
	giveUp   giveUp
	height   int // lines of the tallest view so far
}

func newWidget(q *Question, s screen) *widget {
	w := &widget{q: q, screen: s}
	if q.Kind == Multi || len(q.Options) > 0 && q.Kind == Select || q.Kind == Choice && (len(q.Options) > 0 || q.HasDefault) {
		w.list = newList(q)
		if len(w.list.rows) > 0 {
			return w
		}
		w.list = nil
	}
	w.openField()
	return w
}

// openField replaces the list with a field.
func (w *widget) openField() tea.Cmd {
	var field huh.Field
	switch w.q.Kind {
	case Secret:
		field = secretField(w.q, &w.typed)
	case Line:
		field = lineField(w.q, &w.typed)
	default:
		if w.q.Prefilled {
			w.typed = w.q.Default
		}
		field = textField(w.q, &w.typed)
	}
	w.form = huh.NewForm(huh.NewGroup(field)).WithTheme(huh.ThemeFunc(theme))
	return w.form.Init()
}

// Init implements [tea.Model].
func (w *widget) Init() tea.Cmd {
	if w.form == nil {
		return nil
	}
	return w.form.Init()
}

// Update implements [tea.Model].
func (w *widget) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	reply := make(chan<- reaction, 1) // of a message that is not a key
	if t, ok := msg.(typed); ok {
		msg, reply = t.msg, t.reply
	}
	r, cmd := ended, tea.Cmd(nil)
	if !w.over { // a message of the field may come after the last key
		r, cmd = w.update(msg)
	}
	if w.over {
		r, cmd = ended, tea.Quit
	}
	reply <- r
	return w, cmd
}

func (w *widget) update(msg tea.Msg) (r reaction, cmd tea.Cmd) {
	switch msg := msg.(type) {
	case giveUp:
		w.over, w.giveUp = true, msg
		return taken, nil
	case tea.WindowSizeMsg:
		w.screen.width, w.screen.rows = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch {
		case msg.Code == tea.KeyPgUp:
			w.page = max(w.page-1, 1)
			return taken, nil
		case msg.Code == tea.KeyPgDown:
			w.page++ // again bounds it
			return taken, nil
		case msg.Code == 'c' && msg.Mod == tea.ModCtrl:
			w.over = true
			return taken, nil
		case w.form != nil && w.list != nil && (msg.Code == tea.KeyEscape || msg.String() == "shift+tab"):
			w.form = nil
			return taken, nil
		case w.q.Prefilled && msg.Code == tea.KeyEscape:
			w.typed, w.answered, w.over = w.q.Default, true, true
			return taken, nil
		}
	}
	if w.form != nil {
		_, cmd = w.form.Update(msg)
		w.answered = w.form.State == huh.StateCompleted
		w.over = w.form.State != huh.StateNormal
		return taken, cmd
	}
	return w.updateList(msg)
}

func (w *widget) updateList(msg tea.Msg) (r reaction, cmd tea.Cmd) {
	done := false
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if reason := w.list.reason(msg.Text); reason != "" {
			w.typed = reason
			return taken, w.openField()
		}
		done, r = w.list.press(msg)
	case tea.PasteMsg:
		w.list.paste(msg.Content)
	case hesitated:
		done = w.list.hesitate()
	case helped:
		if w.list.early = false; msg.again {
			w.list.fault = w.list.help()
		}
	}
	w.list.early = w.list.early || r == refused
	if !done {
		return r, nil
	}
	if row, ok := w.list.selection(); ok && row == ownAnswer && w.list.own() == "" {
		return taken, w.openField()
	}
	w.answered, w.over = true, true
	return taken, nil
}

// View implements [tea.Model]. The last view is the answer, in one line.
//
// Views never get lower: when one does, Bubble Tea (v2.0.9) loses count of the lines
// above the cursor and leaves some of the old view behind.
func (w *widget) View() tea.View {
	content := ""
	switch {
	case w.answered:
		content = cyan().Render("❯ " + oneLine(w.finalText(), w.screen.width-2))
	case w.giveUp.elsewhere:
		content = faint().Render(ErrElsewhere.Error())
	case w.over:
		content = faint().Render("not answered")
	case w.form != nil && w.list != nil:
		content = w.again(w.form.View() + "\n" + faint().Render("esc back to the list"))
	case w.q.Prefilled:
		content = w.again(w.form.View() + "\n" + faint().Render("esc back without a change"))
	case w.form != nil:
		content = w.again(w.form.View())
	default:
		content = w.again(w.list.view(w.screen.width, w.screen.rows))
	}
	w.height = max(w.height, lipgloss.Height(content), 2)
	return tea.NewView(lipgloss.PlaceVertical(w.height, lipgloss.Top, content))
}

// beginning is how many lines of a question that does not fit on the screen are shown again below it.
const beginning = 4

// again returns the view with a form: above it how a question begins that does not fit on the screen, and what leads to its start,
// and after that key a page of the question.
func (w *widget) again(form string) string {
	lines, rows := w.screen.printed, max(w.screen.rows-lipgloss.Height(form)-1, 1)
	page, note := "", fmt.Sprintf("%s above • page up shows the start", text.Count(len(lines)-rows, "line"))
	switch {
	case w.screen.rows == 0 || len(lines) <= rows:
		return form
	case w.page > 0:
		w.page = min(w.page, (len(lines)+rows-1)/rows)
		from := min((w.page-1)*rows, len(lines)-rows)
		note = fmt.Sprintf("lines %d to %d of %d • page up • page down", from+1, from+rows, len(lines))
		page = strings.Join(lines[from:from+rows], "\n") + "\n"
	default:
		page = strings.Join(w.screen.begins[:min(len(w.screen.begins), max(rows/2, 1))], "\n") + "\n"
	}
	return page + faint().Render(text.CutColumns(note, w.screen.width)) + "\n" + form
}

// trim returns what takes the cursor from the end of the last view to the line below
// the answer, and removes what is below.
func (w *widget) trim() string {
	const eraseBelow = "\r\x1b[J"
	if w.height > 2 {
		return ansi.CursorUp(w.height-2) + eraseBelow
	}
	return eraseBelow
}

// finalText returns the answer as it stays on the screen.
func (w *widget) finalText() string {
	switch {
	case w.q.Kind == Secret:
		return "(not shown)"
	case w.q.Kind == Multi && w.list != nil:
		chosen, _ := SplitAnswers(w.answer())
		return strings.Join(chosen, ", ")
	}
	return w.answer()
}

func (w *widget) answer() string {
	switch {
	case w.form == nil:
		return w.list.answer()
	case w.typed == "" && w.q.HasDefault:
		return w.q.Default
	case w.q.refusable():
		return refusal(w.typed)
	}
	return w.typed
}

func secretField(q *Question, typed *string) huh.Field {
	return huh.NewInput().Value(typed).CharLimit(0).EchoMode(huh.EchoModePassword).Validate(q.validate).WithTheme(huh.ThemeFunc(frameTheme))
}

// validateTyped is validate for typed text: an empty text means the default.
func (q *Question) validateTyped(s string) error {
	if s == "" && q.HasDefault {
		return nil
	}
	return q.validate(s)
}

func lineField(q *Question, typed *string) huh.Field {
	field := huh.NewInput().Value(typed).CharLimit(0).Validate(q.validateTyped)
	if q.HasDefault {
		field.Placeholder(safeLine(q.Default) + " (default)")
	}
	return field.WithTheme(huh.ThemeFunc(frameTheme))
}

func textField(q *Question, typed *string) huh.Field {
	lines := 3
	if q.Prefilled {
		lines = max(lines, min(strings.Count(*typed, "\n")+2, 20))
	}
	field := huh.NewText().Value(typed).Lines(lines).CharLimit(0).ExternalEditor(false).Validate(q.validateTyped)
	if q.HasDefault {
		field.Placeholder(safe(q.Default) + " (default)")
	}
	return field.WithTheme(huh.ThemeFunc(frameTheme))
}

// The colors are those of the terminal's palette, so that they are readable on a light
// and on a dark background.
func cyan() lipgloss.Style  { return lipgloss.NewStyle().Foreground(lipgloss.Cyan) }
func red() lipgloss.Style   { return lipgloss.NewStyle().Foreground(lipgloss.Red) }
func faint() lipgloss.Style { return lipgloss.NewStyle().Faint(true) }

// theme is the style of the list and of everything outside of fields.
func theme(bool) *huh.Styles {
	t := huh.ThemeBase(true)
	t.Focused.Base = lipgloss.NewStyle()
	t.Focused.ErrorMessage = red()
	t.Focused.TextInput.Placeholder = faint()
	t.Help.ShortKey, t.Help.ShortDesc, t.Help.ShortSeparator = faint(), faint(), faint()
	t.Blurred = t.Focused
	return t
}

// frameTheme is the style of the text field: its lines have a bar at the left.
func frameTheme(dark bool) *huh.Styles {
	t := theme(dark)
	t.Focused.Base = lipgloss.NewStyle().PaddingLeft(1).BorderStyle(lipgloss.ThickBorder()).BorderLeft(true).BorderForeground(lipgloss.Cyan)
	t.Blurred = t.Focused
	return t
}

// oneLine returns s as it is shown once the question is answered.
func oneLine(s string, width int) string {
	return text.CutColumns(cmp.Or(safeLine(s), "(no answer)"), max(width, 1))
}
