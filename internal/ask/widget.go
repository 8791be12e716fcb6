package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"loki/internal/text"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Values of the entries that are not answers.
const (
	ownAnswer = -1 // leads to the text field
	noAnswer  = -2 // stands first in a consent, so that Enter alone gives none
)

// listHeight bounds the lines of a list of options, which then scrolls, so that the
// end of the question stays visible.
const listHeight = 10

// screen is what a widget knows about the terminal.
type screen struct {
	width, rows int      // rows is 0 if that is not known
	printed     []string // the lines of the question above the widget, with styles
}

// askWidget draws a list or a text field for q and returns the answer, which
// replaces it on the screen.
func askWidget(ctx context.Context, q *Question, in, out *os.File, s screen) (string, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p := tea.NewProgram(newWidget(q, s), tea.WithInput(in), tea.WithOutput(out), tea.WithContext(own),
		tea.WithoutSignalHandler(), tea.WithFilter(refuseSizeRequests))
	// A program whose own context ends leaves its view on the screen. So it gets a
	// message to end.
	notified := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(notified)
		p.Send(giveUp{})
	})
	model, err := p.Run()
	cancel()
	if !stop() {
		<-notified
	}
	if err != nil {
		return "", err
	}
	w := model.(*widget)
	if _, err := io.WriteString(out, w.trim()); err != nil {
		return "", err
	}
	if w.form.State != huh.StateCompleted {
		return "", context.Canceled
	}
	return w.answer(), nil
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
type giveUp struct{}

// widget is a list to choose from, a field to type in, or the one and then the other.
type widget struct {
	q       *Question
	screen  screen
	page    int // the number of the page of the question that is shown again, 0 if none is
	form    *huh.Form
	list    *huh.Select[int] // nil without one
	entries []string         // answers to choose from
	chosen  int              // index into entries, or ownAnswer
	marked  []int            // indexes into q.Options, of a Multi
	typed   string
	tried   bool // Enter was pressed
	over    bool // the form has ended, or the caller has given up
	height  int  // lines of the tallest view so far
}

func newWidget(q *Question, s screen) *widget {
	w := &widget{q: q, screen: s, chosen: ownAnswer}
	var groups []*huh.Group
	switch {
	case q.Kind == Select && len(q.Options) > 0:
		w.entries, w.chosen = preselected(q)
		w.list = listField(q, w.entries, &w.chosen, s.width)
		groups = []*huh.Group{huh.NewGroup(w.list)}
	case q.Kind == Multi && len(q.Options) > 0:
		groups = []*huh.Group{huh.NewGroup(multiField(q, &w.marked, &w.tried))}
	case q.Kind == Secret:
		groups = []*huh.Group{huh.NewGroup(secretField(q, &w.typed))}
	case q.Kind == Line:
		groups = []*huh.Group{huh.NewGroup(lineField(q, &w.typed))}
	case q.Kind == Choice && (len(q.Options) > 0 || q.HasDefault):
		w.entries, w.chosen = preselected(q)
		w.list = listField(q, w.entries, &w.chosen, s.width)
		list := huh.NewGroup(w.list)
		text := huh.NewGroup(textField(q, &w.typed))
		groups = []*huh.Group{list, text.WithHideFunc(func() bool { return w.chosen != ownAnswer })}
	default:
		groups = []*huh.Group{huh.NewGroup(textField(q, &w.typed))}
	}
	w.form = huh.NewForm(groups...).WithTheme(huh.ThemeFunc(theme)).WithKeyMap(keys(len(w.entries)))
	return w
}

// Init implements [tea.Model].
func (w *widget) Init() tea.Cmd { return w.form.Init() }

// Update implements [tea.Model].
func (w *widget) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case giveUp:
		w.over = true
		return w, tea.Quit
	case tea.WindowSizeMsg:
		w.screen.width, w.screen.rows = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.Code {
		case tea.KeyPgUp:
			w.page = max(w.page-1, 1)
			return w, nil
		case tea.KeyPgDown:
			w.page++ // again bounds it
			return w, nil
		}
		w.tried = w.tried || msg.Code == tea.KeyEnter
	}
	_, cmd := w.form.Update(msg)
	if w.form.State != huh.StateNormal {
		w.over = true
		return w, tea.Quit
	}
	return w, cmd
}

// View implements [tea.Model]. The last view is the answer, in one line.
//
// Views never get lower: when one does, Bubble Tea (v2.0.9) loses count of the lines
// above the cursor and leaves some of the old view behind.
func (w *widget) View() tea.View {
	content := w.again(w.form.View() + w.whole())
	if w.over {
		content = faint().Render("not answered")
		if w.form.State == huh.StateCompleted {
			content = cyan().Render("❯ " + oneLine(w.shown(), w.screen.width-2))
		}
	}
	w.height = max(w.height, lipgloss.Height(content), 2)
	return tea.NewView(lipgloss.PlaceVertical(w.height, lipgloss.Top, content))
}

// whole returns what is to be drawn below the list: all of the entry under the cursor if its label is cut.
func (w *widget) whole() string {
	if w.list == nil {
		return ""
	}
	const most = 4 // rows
	i, _ := w.list.Hovered()
	if i < 0 || ansi.StringWidth(safeLine(w.entries[i])) <= labelWidth(w.screen.width) {
		return ""
	}
	rows := strings.Split(ansi.Wrap(safeLine(w.entries[i]), max(w.screen.width, 20), ""), "\n")
	if len(rows) > most {
		rows = append(rows[:most-1], rows[most-1]+"…")
	}
	return "\n\n" + faint().Render(strings.Join(rows, "\n"))
}

// again returns the view with a form: above it what leads to the start of a question that does not fit on the screen, and after
// that key a page of the question.
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

// shown returns the answer as it stays on the screen.
func (w *widget) shown() string {
	switch w.q.Kind {
	case Secret:
		return "(not shown)"
	case Multi:
		return strings.Join(w.markedOptions(), ", ")
	}
	return w.answer()
}

func (w *widget) markedOptions() []string {
	var options []string
	for _, i := range slices.Sorted(slices.Values(w.marked)) {
		options = append(options, w.q.Options[i])
	}
	return options
}

func (w *widget) answer() string {
	switch {
	case w.q.Kind == Multi && len(w.q.Options) > 0:
		return JoinAnswers(w.markedOptions())
	case w.chosen >= 0:
		return w.entries[w.chosen]
	case w.typed == "" && w.q.HasDefault:
		return w.q.Default
	case w.q.refusable():
		return refusal(w.typed)
	}
	return w.typed
}

// preselected returns the answers to choose from and the index of the one that is
// preselected: the default, which becomes an entry if it is not an option. Without a default
// it is the first one, and [noAnswer] for a question about permission.
func preselected(q *Question) (entries []string, selected int) {
	entries = slices.Clone(q.Options)
	switch {
	case q.HasDefault:
	case q.Consent:
		return entries, noAnswer
	default:
		return entries, 0
	}
	if i := slices.Index(entries, q.Default); i >= 0 {
		return entries, i
	}
	return append(entries, q.Default), len(entries)
}

// labelWidth is how many columns a label of a list has: one of several rows could push the others off the screen.
func labelWidth(width int) int { return max(width-4, 20) }

func listField(q *Question, entries []string, chosen *int, width int) *huh.Select[int] {
	options := make([]huh.Option[int], 0, len(entries)+2)
	if *chosen == noAnswer {
		options = append(options, huh.NewOption("(choose an answer)", noAnswer))
	}
	for i, entry := range entries {
		label := cmp.Or(safeLine(entry), "(empty)")
		if q.HasDefault && entry == q.Default {
			label += " (default)"
		}
		options = append(options, huh.NewOption(text.CutColumns(label, labelWidth(width)), i))
	}
	if q.Kind == Choice {
		label := "Something else…"
		if q.refusable() {
			label = "no, and say why…"
		}
		options = append(options, huh.NewOption(label, ownAnswer))
	}
	list := huh.NewSelect[int]().Options(options...).Value(chosen).Validate(func(i int) error {
		switch {
		case i == noAnswer:
			return errors.New("choose with the arrow keys")
		case i == ownAnswer || q.HasDefault && entries[i] == q.Default:
			return nil
		}
		return q.validate(entries[i])
	})
	if len(options) > listHeight {
		list.Height(listHeight)
	}
	return list
}

func multiField(q *Question, marked *[]int, tried *bool) huh.Field {
	var preset []string
	if q.HasDefault {
		preset, _ = SplitAnswers(q.Default) // a default of another form marks nothing
	}
	options := make([]huh.Option[int], 0, len(q.Options))
	for i, option := range q.Options {
		options = append(options, huh.NewOption(cmp.Or(safeLine(option), "(empty)"), i).Selected(slices.Contains(preset, option)))
	}
	list := huh.NewMultiSelect[int]().Options(options...).Value(marked).Validate(func(chosen []int) error {
		if !*tried {
			return nil // the help is shown where errors are
		}
		w := widget{q: q, marked: chosen}
		return q.validate(w.answer())
	})
	if len(options) > listHeight {
		list.Height(listHeight)
	}
	return list
}

func secretField(q *Question, typed *string) huh.Field {
	return huh.NewInput().Value(typed).CharLimit(0).EchoMode(huh.EchoModePassword).Validate(q.validate).WithTheme(huh.ThemeFunc(frameTheme))
}

// validateTyped is validate for typed text: an empty text stands for the
// default.
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
	field := huh.NewText().Value(typed).Lines(3).CharLimit(0).ExternalEditor(false).Validate(q.validateTyped)
	if q.HasDefault {
		field.Placeholder(safe(q.Default) + " (default)")
	}
	return field.WithTheme(huh.ThemeFunc(frameTheme))
}

// keys are huh's, but Escape leads back to the list, and a short list cannot be
// filtered.
func keys(entries int) *huh.KeyMap {
	k := huh.NewDefaultKeyMap()
	k.Text.Prev = key.NewBinding(key.WithKeys("esc", "shift+tab"), key.WithHelp("esc", "back"))
	k.Select.Filter.SetEnabled(entries >= listHeight)
	k.MultiSelect.Filter.SetEnabled(false)
	return k
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
	t.Focused.SelectSelector = cyan().SetString("❯ ")
	t.Focused.SelectedOption = cyan()
	t.Focused.MultiSelectSelector = cyan().SetString("❯ ")
	t.Focused.SelectedPrefix = cyan().SetString("[x] ")
	t.Focused.UnselectedPrefix = lipgloss.NewStyle().SetString("[ ] ")
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
