package ask

import (
	"cmp"
	"context"
	"errors"
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

// askWidget draws a list or a text field for q and returns the answer, which
// replaces it on the screen.
func askWidget(ctx context.Context, q *Question, in, out *os.File, width int) (string, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p := tea.NewProgram(newWidget(q, width), tea.WithInput(in), tea.WithOutput(out), tea.WithContext(own),
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
	width   int // of the terminal, in columns
	form    *huh.Form
	entries []string // answers to choose from
	chosen  int      // index into entries, or ownAnswer
	marked  []int    // indexes into q.Options, of a Multi
	typed   string
	tried   bool // Enter was pressed
	over    bool // the form has ended, or the caller has given up
	height  int  // lines of the tallest view so far
}

func newWidget(q *Question, width int) *widget {
	w := &widget{q: q, width: width, chosen: ownAnswer}
	var groups []*huh.Group
	switch {
	case q.Kind == Select && len(q.Options) > 0:
		w.entries, w.chosen = preselected(q)
		groups = []*huh.Group{huh.NewGroup(listField(q, w.entries, &w.chosen, width))}
	case q.Kind == Multi && len(q.Options) > 0:
		groups = []*huh.Group{huh.NewGroup(multiField(q, &w.marked, &w.tried))}
	case q.Kind == Secret:
		groups = []*huh.Group{huh.NewGroup(secretField(q, &w.typed))}
	case q.Kind == Line:
		groups = []*huh.Group{huh.NewGroup(lineField(q, &w.typed))}
	case q.Kind == Choice && (len(q.Options) > 0 || q.HasDefault):
		w.entries, w.chosen = preselected(q)
		list := huh.NewGroup(listField(q, w.entries, &w.chosen, width))
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
		w.width = msg.Width
	case tea.KeyPressMsg:
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
	content := w.form.View()
	if w.over {
		content = faint().Render("not answered")
		if w.form.State == huh.StateCompleted {
			content = cyan().Render("❯ " + oneLine(w.shown(), w.width-2))
		}
	}
	w.height = max(w.height, lipgloss.Height(content), 2)
	return tea.NewView(lipgloss.PlaceVertical(w.height, lipgloss.Top, content))
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

func listField(q *Question, entries []string, chosen *int, width int) huh.Field {
	options := make([]huh.Option[int], 0, len(entries)+2)
	if *chosen == noAnswer {
		options = append(options, huh.NewOption("(choose an answer)", noAnswer))
	}
	for i, entry := range entries {
		label := cmp.Or(safeLine(entry), "(empty)")
		if q.HasDefault && entry == q.Default {
			label += " (default)"
		}
		// A label of several rows could push the others off the screen.
		options = append(options, huh.NewOption(text.CutColumns(label, max(width-4, 20)), i))
	}
	if q.Kind == Choice {
		options = append(options, huh.NewOption("Something else…", ownAnswer))
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
