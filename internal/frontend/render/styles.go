package render

import (
	"slices"
	"strconv"
	"strings"

	"loki/internal/frontend/render/highlight"
	"loki/internal/frontend/render/markdown"
	"loki/internal/frontend/render/theme"
)

// Capabilities are what a terminal can do beyond colors.
type Capabilities struct {
	TrueColor    bool // 24-bit colors
	Hyperlinks   bool // OSC 8
	LineAnchors  bool // takes the fragment of a link to a file for a line
	Synchronized bool // draws what is between two marks at once (mode 2026)
}

// DetectCapabilities returns what the terminal can do according to the environment. What is
// unknown it cannot do.
//
// Sources: COLORTERM as S-Lang and VTE set it; the lists of terminals of the documents on
// OSC 8 (Koblinger) and on synchronized output (Parasuraman).
func DetectCapabilities(getenv func(string) string) Capabilities {
	c := Capabilities{TrueColor: getenv("COLORTERM") == "truecolor" || getenv("COLORTERM") == "24bit"}
	term := getenv("TERM")
	begins := func(prefix string) bool { return strings.HasPrefix(term, prefix) }
	known := slices.ContainsFunc([]string{"xterm-kitty", "foot", "alacritty", "xterm-ghostty", "contour", "wezterm"}, begins) ||
		getenv("WT_SESSION") != ""
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "ghostty", "rio", "contour":
		known = true
	case "vscode", "Hyper", "Tabby":
		c.Hyperlinks = true
	}
	c.LineAnchors = slices.Contains([]string{"iTerm.app", "vscode"}, getenv("TERM_PROGRAM")) || begins("xterm-kitty")
	if known {
		c.Hyperlinks, c.Synchronized = true, true
	}
	if v, err := strconv.Atoi(getenv("VTE_VERSION")); err == nil {
		c.Hyperlinks = c.Hyperlinks || v >= 5000
		c.Synchronized = c.Synchronized || v >= 6800
	}
	if v, err := strconv.Atoi(getenv("KONSOLE_VERSION")); err == nil {
		c.Hyperlinks = c.Hyperlinks || v >= 201200
	}
	if getenv("TMUX") != "" || getenv("STY") != "" || begins("screen") || begins("tmux") {
		// Between us and the terminal is a multiplexer, which may pass neither on.
		c.Hyperlinks, c.Synchronized = false, false
	}
	if v := getenv("FORCE_HYPERLINK"); v != "" {
		c.Hyperlinks = !isNo(v)
	}
	return c
}

// Styles returns how Markdown looks in a theme.
func Styles(t *theme.Theme, trueColor bool) *markdown.Styles {
	prose := func(extra, scopes string) string {
		st := t.Style("text.html.markdown", scopes)
		if c := t.Foreground(); c != nil && st.Color != nil && *st.Color == *c {
			st.Color = nil // the text has it already
		}
		return joinParameters(extra, st.Parameters(trueColor))
	}
	s := &markdown.Styles{
		Text:     theme.Style{Color: t.Foreground()}.Parameters(trueColor),
		Mark:     prose("", "punctuation.definition.comment comment"),
		Quote:    prose("", "markup.quote.markdown"),
		Bar:      prose("", "punctuation.definition.blockquote.markdown comment"),
		Bullet:   prose("", "punctuation.definition.list_item.markdown markup.list.unnumbered.markdown keyword.operator"),
		Done:     prose("", "markup.inserted string.quoted"),
		Code:     prose("", "markup.raw.inline.markdown markup.inline.raw.string.markdown string.quoted"),
		Block:    prose("", "markup.raw.block.fenced.markdown markup.fenced_code.block.markdown"),
		Link:     prose("4", "markup.underline.link.markdown string.other.link.title.markdown"),
		URL:      prose("", "punctuation.definition.comment comment"),
		Rule:     prose("", "meta.separator.markdown comment"),
		Head:     "1",
		Emphasis: prose("3", "markup.italic.markdown"),
		Strong:   prose("1", "markup.bold.markdown"),
		Strike:   "9",
		HTML:     prose("", "comment"),
		Math:     prose("", "markup.math.block.markdown constant.other"),
	}
	for i := range s.Headings {
		s.Headings[i] = prose("1", "markup.heading."+strconv.Itoa(i+1)+".markdown entity.name.section.markdown entity.name.function")
	}
	s.Headings[0] = joinParameters(s.Headings[0], "4")
	s.Token = func(k highlight.Kind) string {
		return t.Style("source", k.Scopes()).Parameters(trueColor)
	}
	return s
}

// joinParameters joins parameters of an escape sequence. Those of b may begin with a.
func joinParameters(a, b string) string {
	switch {
	case a == "" || b == a || strings.HasPrefix(b, a+";"):
		return b
	case b == "":
		return a
	}
	return a + ";" + b
}
