package ask

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/text"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// ownAnswer is the row that leads to the text field.
const ownAnswer = -1

const (
	// listHeight bounds the rows of a list that are shown, so that the end of the question stays visible.
	listHeight = 10
)

// list is a list of answers to choose from: with the arrow keys, by typing a part of an answer, its number, or y, n and a. A question
// about permission takes one key, and Enter if the answer lasts, or the whole text of an answer and Enter. Nothing is selected at first if the question has no default.
type list struct {
	q       *Question
	entries []string // the answers
	rows    []int    // indexes into entries, and ownAnswer
	shown   []int    // indexes into rows: the ones that match what was typed
	at      int      // index into shown, -1 if none is selected
	top     int      // the first of shown that is drawn
	typed   string
	marked  []bool // for each entry, of a Multi
	fault   string // what is wrong with what was pressed
	letters map[rune]int
	single  bool // a letter or digit was the answer, without Enter
	early   bool // keys do not count yet
}

func newList(q *Question) *list {
	l := &list{q: q, entries: slices.Clone(q.Options), letters: q.letters()}
	if q.HasDefault && q.Kind != Multi && !slices.Contains(l.entries, q.Default) {
		l.entries = append(l.entries, q.Default)
	}
	for i := range l.entries {
		l.rows = append(l.rows, i)
	}
	if q.Kind == Choice {
		l.rows = append(l.rows, ownAnswer)
	}
	if l.marked = make([]bool, len(l.entries)); q.Kind == Multi && q.HasDefault {
		preset, _ := SplitAnswers(q.Default) // a default of another form marks nothing
		for i, entry := range l.entries {
			l.marked[i] = slices.Contains(preset, entry)
		}
	}
	l.filter("")
	return l
}

// letters returns the options that one letter chooses: y, n and a of yes, no and always, and for a question about permission
// the letter with which only one option begins.
func (q *Question) letters() map[rune]int {
	letters := map[rune]int{}
	first := func(option string) rune {
		r, _ := utf8.DecodeRuneInString(strings.ToLower(strings.TrimSpace(option)))
		return r
	}
	for i, option := range q.Options {
		for _, name := range []string{yes, no, always} {
			_, taken := letters[first(name)]
			if word(option) == name && !taken && (q.Consent || !strings.Contains(option, " ")) {
				letters[first(name)] = i
			}
		}
	}
	if !q.Consent {
		return letters
	}
	if i := slices.Index(q.Options, q.Affirms); i >= 0 && q.Affirms != "" && len(q.Options) == 2 {
		letters['y'], letters['n'] = i, 1-i
	}
	count := map[rune]int{}
	for _, option := range q.Options {
		count[first(option)]++
	}
	for i, option := range q.Options {
		r := first(option)
		if _, taken := letters[r]; !taken && count[r] == 1 && (r < '0' || r > '9') {
			letters[r] = i
		}
	}
	return letters
}

// word returns the first word of an option.
func word(option string) string {
	name, _, _ := strings.Cut(strings.ToLower(option), " ")
	return strings.Trim(name, ",:")
}

// The answers that have a letter in every list.
const (
	yes    = "yes"
	no     = "no"
	always = "always"
)

func (l *list) label(row int) string {
	switch {
	case row != ownAnswer:
		return cmp.Or(safeLine(l.entries[row]), "(empty)")
	case l.q.refusable():
		return "no, and say why…"
	}
	return somethingElse + "…"
}

const somethingElse = "Something else"

// own returns the words that were typed as an answer of the user's own, "" if there are none and the row for it opens the field.
func (l *list) own() string {
	words := strings.TrimSpace(l.typed)
	i := l.byNumber(words)
	switch {
	case l.q.Kind != Choice || l.q.Consent || l.q.option(words) >= 0:
	case i >= 0 && l.rows[i] == ownAnswer && l.numbered():
	case len(words) <= len(somethingElse) && strings.EqualFold(words, somethingElse[:len(words)]):
	default:
		return words
	}
	return ""
}

// numbered reports whether a digit chooses: there are no more rows than digits, and no answer has digits.
func (l *list) numbered() bool {
	return len(l.rows) <= 9 && !slices.ContainsFunc(l.entries, func(entry string) bool { return strings.ContainsAny(entry, "0123456789") }) || l.q.Consent && len(l.rows) <= 9
}

// byNumber returns the row of a number that was typed, -1 if there is none.
func (l *list) byNumber(typed string) int {
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(l.rows) {
		return n - 1
	}
	return -1
}

// filter shows the rows that match what was typed, and the one for words of the user's own. It selects the row that matches best;
// of several that match equally well, none. Where a key grants something, only the start of a row matches. At a question about permission
// all rows stay, and only a key or the whole text of an answer selects: rows have the text of a model in them.
func (l *list) filter(typed string) {
	l.typed, l.shown, l.at, l.top, l.fault = typed, nil, -1, 0, ""
	if l.q.Consent && l.q.Kind != Multi {
		for i := range l.rows {
			l.shown = append(l.shown, i)
		}
		l.at = l.rowByText(typed)
		return
	}
	fold := strings.ToLower(strings.TrimSpace(typed))
	best, matching, option := 0, 0, l.q.option(strings.TrimSpace(typed))
	for i, row := range l.rows {
		label, rank := strings.ToLower(l.label(row)), 0
		switch {
		case typed == "" && row != ownAnswer && l.q.Kind == Multi && i == 0:
			rank = 1
		case typed == "" && row != ownAnswer && l.q.HasDefault && l.q.Kind != Multi && l.entries[row] == l.q.Default:
			rank = 1
		case fold == "" || row == ownAnswer && !l.q.Consent:
		case row != ownAnswer && row == option:
			if rank = 5; row == l.byNumber(fold) && !l.numbered() && !strings.EqualFold(label, fold) {
				rank = max(match(label, fold), 2) // digits are text, too, where answers have digits
			}
			matching++
		default:
			if rank = match(label, fold); rank == 0 || l.q.grants() && rank < atStart {
				continue
			}
			matching++
		}
		l.shown = append(l.shown, i)
		switch {
		case rank > best:
			best, l.at = rank, len(l.shown)-1
		case rank > 0 && rank == best:
			l.at = -1
		}
	}
	if fold == "" || matching > 0 {
		return
	}
	if l.at = len(l.shown) - 1; l.at < 0 { // else it is the row for words of the user's own
		l.fault = "nothing here matches"
	}
}

// rowByText returns the row that a text selects at a question about permission, -1 if there is none.
func (l *list) rowByText(typed string) (row int) {
	if row = l.rowByKey(typed); row >= 0 || typed == "" {
		return row
	}
	return slices.IndexFunc(l.q.Options, func(option string) bool { return word(option) != always && strings.EqualFold(option, typed) })
}

// rowByKey returns the row that a letter or digit chooses, -1 if there is none.
func (l *list) rowByKey(typed string) (row int) {
	r, n := utf8.DecodeRuneInString(strings.ToLower(typed))
	if row, ok := l.letters[r]; ok && n == len(typed) {
		return row
	}
	if len(typed) == 1 && l.numbered() {
		return l.byNumber(typed)
	}
	return -1
}

// reason returns the text that begins with s after a no, if that is how a user says why: "no, ..."; otherwise "".
func (l *list) reason(s string) string {
	if r, _ := utf8.DecodeRuneInString(s); s == "" || !l.q.refusable() || !strings.EqualFold(l.typed, no) || unicode.IsLetter(r) {
		return ""
	}
	return l.typed + s
}

// atStart is the result of match for the start of a label.
const atStart = 4

// match returns how well a part of a label matches it: atStart for its start, 3 for words, 2 for the start of a word, 1 for
// something within a word, 0 if it is no part of it.
func match(label, part string) (rank int) {
	within := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for from := 0; ; {
		i := strings.Index(label[from:], part)
		if i < 0 {
			return rank
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(label[:i])
		after, _ := utf8.DecodeRuneInString(label[i+len(part):])
		switch starts := !within(before); {
		case i == 0:
			return atStart
		case starts && (i+len(part) == len(label) || unicode.IsSpace(after)):
			rank = 3
		case starts:
			rank = max(rank, 2)
		default:
			rank = max(rank, 1)
		}
		_, n := utf8.DecodeRuneInString(label[i:])
		from = i + n
	}
}

// selection returns the row that is selected, false if none is.
func (l *list) selection() (row int, ok bool) {
	if l.at < 0 || l.at >= len(l.shown) {
		return 0, false
	}
	return l.rows[l.shown[l.at]], true
}

func (l *list) move(by int) {
	if n := len(l.shown); n > 0 {
		if l.at < 0 && by < 0 {
			l.at = 0 // one up from there is the last
		}
		l.at, l.fault = (l.at+by+n)%n, ""
	}
}

// press acts on a key. It reports whether the list has its answer, and otherwise what the key was.
func (l *list) press(msg tea.KeyPressMsg) (done bool, r reaction) {
	switch msg.String() {
	case "up", "ctrl+p", "shift+tab":
		l.move(-1)
	case "down", "ctrl+n", "tab":
		l.move(1)
	case "home":
		l.at = 0
	case "end":
		l.at = len(l.shown) - 1
	case "enter", "ctrl+j":
		return l.enter(), taken
	case "esc", "ctrl+u":
		l.filter("")
	case "backspace", "ctrl+h":
		if l.typed != "" {
			_, n := utf8.DecodeLastRuneInString(l.typed)
			l.filter(l.typed[:len(l.typed)-n])
		}
	case "ctrl+a":
		all := slices.Contains(l.marked, false)
		for i := range l.marked {
			l.marked[i] = all
		}
	default:
		if msg.Text == "" || msg.Mod&^tea.ModShift != 0 {
			return false, taken
		}
		return false, l.add(msg.Text)
	}
	return false, taken
}

// add takes a character that was typed.
func (l *list) add(s string) reaction {
	typed := l.typed + s
	row := l.rowByKey(typed)
	switch {
	case l.q.Kind == Multi && s == " ":
		if row, ok := l.selection(); ok {
			l.marked[row], l.fault = !l.marked[row], ""
		} else {
			l.fault = l.several()
		}
		return taken
	case l.q.Kind == Multi && l.byNumber(s) == row && row >= 0:
		l.marked[row] = !l.marked[row]
		l.at = slices.Index(l.shown, row)
		return taken
	case !l.q.Consent && typed == " ":
		return taken
	}
	switch l.filter(typed); {
	case l.q.Consent && row < 0 && !l.begins(-1):
		l.filter("")
		return refused
	case row < 0 || l.q.Kind == Multi:
		return taken
	}
	if l.at = slices.Index(l.shown, row); l.at < 0 {
		l.shown, l.at, l.fault = []int{row}, 0, ""
	}
	if l.lasting(row) || !l.q.Consent && l.begins(row) {
		return taken
	}
	return alone
}

// begins reports whether what was typed is the start of another row, too, so that it is no answer without Enter. Rows that begin with
// always are no such at a question about permission.
func (l *list) begins(row int) bool {
	for i, other := range l.rows {
		label := strings.ToLower(l.label(other))
		if i != row && strings.HasPrefix(label, strings.ToLower(l.typed)) && !(l.q.Consent && (other == ownAnswer || word(label) == always)) {
			return true
		}
	}
	return false
}

// lasting reports whether a row grants more than the question is about now, which takes Enter.
func (l *list) lasting(row int) bool {
	i := l.rows[row]
	return l.q.Consent && i != ownAnswer && (l.q.Lasts && (l.q.Affirms == "" || l.entries[i] == l.q.Affirms) || word(l.entries[i]) == always)
}

// hesitate takes the row of the letter or digit after which nothing was typed.
func (l *list) hesitate() (done bool) {
	l.single = l.enter()
	return l.single
}

// paste takes pasted text as typed, but for a question about permission, which it does not answer.
func (l *list) paste(s string) {
	if l.filter(l.typed + strings.TrimSpace(safeLine(s))); l.q.Consent {
		l.filter("")
		l.fault = l.help()
	}
}

// enter takes the row that is selected, if its answer is valid.
func (l *list) enter() (done bool) {
	row, ok := l.selection()
	switch {
	case l.q.Kind == Multi:
		return l.enterMulti()
	case !ok && len(l.shown) == 0: // which it says already
	case !ok:
		l.fault = l.several()
	case row == ownAnswer && l.own() != "":
		if _, err := l.q.Match(l.own()); err != nil {
			l.fault = err.Error()
			return false
		}
		return true
	case row == ownAnswer || l.q.HasDefault && l.entries[row] == l.q.Default:
		return true
	default:
		if err := l.q.validate(l.entries[row]); err != nil {
			l.fault = err.Error()
			return false
		}
		return true
	}
	return false
}

// several returns why no row is selected.
func (l *list) several() string {
	if strings.TrimSpace(l.typed) == "" {
		return "nothing is selected: " + l.help()
	}
	return fmt.Sprintf("several answers match %q: type more of one, or choose it with ↑↓", strings.TrimSpace(l.typed))
}

// enterMulti adds what was typed to the marked entries: their names or numbers, or a part of one of them. If the question
// does not accept that none is marked, it marks the selected entry.
func (l *list) enterMulti() bool {
	if l.typed != "" {
		answer, err := l.q.matchMulti(l.typed)
		chosen, _ := SplitAnswers(answer)
		switch {
		case err == nil:
			for _, option := range chosen {
				l.marked[slices.Index(l.entries, option)] = true
			}
		case len(l.shown) == 0: // which it says already
			return false
		case l.at < 0:
			l.fault = l.several()
			return false
		default:
			row, _ := l.selection()
			l.marked[row] = true
		}
	}
	err := l.q.validate(l.answer())
	if row, ok := l.selection(); ok && err != nil && row >= 0 && !slices.Contains(l.marked, true) { // none is not enough
		l.marked[row] = true
		if err = l.q.validate(l.answer()); err != nil {
			l.marked[row] = false
		}
	}
	if err != nil {
		l.filter("")
		l.fault = err.Error()
		return false
	}
	return true
}

// answer returns the entry that was chosen, or the marked ones.
func (l *list) answer() string {
	if l.q.Kind == Multi {
		var chosen []string
		for i, entry := range l.entries {
			if l.marked[i] {
				chosen = append(chosen, entry)
			}
		}
		return JoinAnswers(chosen)
	}
	row, _ := l.selection()
	if row == ownAnswer {
		return l.own()
	}
	return l.entries[row]
}

// help names the keys.
func (l *list) help() string {
	number := ""
	if l.numbered() {
		number = "1"
		if n := len(l.rows); n > 1 {
			number += "-" + strconv.Itoa(n)
		}
	}
	var letters []string
	for r := range l.letters {
		letters = append(letters, string(r))
	}
	order := func(s string) int { return l.letters[rune(s[0])] }
	slices.SortFunc(letters, func(a, b string) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b)) })
	if number != "" {
		letters = append(letters, number)
	}
	if !l.q.Consent {
		letters = append(letters, "type or ↑↓ to choose")
		if l.q.Kind == Multi {
			letters = append(letters, "space marks")
		}
		return strings.Join(letters, " • ")
	}
	return "press " + strings.Join(letters, " ")
}

// view draws the list. rows is how many lines the screen has, 0 if that is not known.
func (l *list) view(width, rows int) string {
	var b strings.Builder
	height := min(len(l.rows), listHeight)
	if rows > 0 {
		height = max(min(height, rows-6), 1)
	}
	if l.at >= 0 {
		l.top = max(min(l.top, l.at), l.at-height+1)
	}
	for i := range height {
		if i += l.top; i < len(l.shown) {
			b.WriteString(l.row(i, width))
		}
		b.WriteByte('\n')
	}
	if l.typed != "" {
		b.WriteString(cyan().Render("> ") + text.CutColumns(safeLine(l.typed), max(width-2, 10)))
	}
	b.WriteString("\n")
	if l.fault != "" {
		b.WriteString(red().Render(ansi.Wrap(safeLine(l.fault), max(width, 20), "")))
		if strings.HasSuffix(l.fault, l.help()) {
			return b.String() + l.whole(width)
		}
		b.WriteByte('\n')
	}
	help := l.help()
	if l.at >= 0 || l.q.Kind == Multi {
		help += " • enter submit"
	}
	if l.early {
		help = "one moment…"
	}
	if hidden := len(l.shown) - height; hidden > 0 {
		help = fmt.Sprintf("%d more • %s", hidden, help)
	}
	b.WriteString(faint().Render(text.CutColumns(help, max(width, 20))))
	return b.String() + l.whole(width)
}

func (l *list) row(i, width int) string {
	row := l.rows[l.shown[i]]
	label := l.label(row)
	if l.q.Kind == Multi {
		mark := "[ ] "
		if l.marked[row] {
			mark = cyan().Render("[x] ")
		}
		label = mark + label
	} else if row != ownAnswer && l.q.HasDefault && l.entries[row] == l.q.Default {
		label += " (default)"
	} else if own := l.own(); row == ownAnswer && own != "" {
		label = somethingElse + ": " + safeLine(own)
	}
	if l.lasting(l.shown[i]) {
		label += " (then Enter)"
	}
	label = text.CutColumns(label, labelWidth(width))
	if i == l.at {
		return cyan().Render("❯ ") + cyan().Render(label)
	}
	return "  " + label
}

// labelWidth is how many columns a label of a list has: one of several rows could push the others off the screen.
func labelWidth(width int) int { return max(width-4, 20) }

// whole returns all of the selected row if its label is cut.
func (l *list) whole(width int) string {
	const most = 4 // rows
	row, ok := l.selection()
	if !ok || row == ownAnswer || ansi.StringWidth(l.label(row))+len("[x] ") <= labelWidth(width) {
		return ""
	}
	rows := strings.Split(ansi.Wrap(l.label(row), max(width, 20), ""), "\n")
	if len(rows) > most {
		rows = append(rows[:most-1], rows[most-1]+"…")
	}
	return "\n\n" + faint().Render(strings.Join(rows, "\n"))
}
