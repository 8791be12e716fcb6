package theme

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"loki/internal/base/text"
)

// Theme is a parsed theme. It is never changed.
type Theme struct {
	name       string
	foreground *Color // nil means that of the terminal
	background Color
	rules      []rule
}

// rule is a setting for one selector.
type rule struct {
	path    []string // scopes that are within each other
	without []string // scopes that none may be
	color   *Color
	font    *font
}

type font struct{ bold, italic, underline bool }

// Style is how a piece of text looks.
type Style struct {
	Color                   *Color // nil means that of the terminal
	Bold, Italic, Underline bool
}

// Load reads the theme in a file.
func Load(file string) (*Theme, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t, err := Parse(text.TrimMark(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Open reads the theme in a file; if there is no such file, it returns the built-in theme
// for light or dark backgrounds.
func Open(file string, light bool) (*Theme, error) {
	t, err := Load(file)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return t, err
	case light:
		return Light(), nil
	}
	return Dark(), nil
}

// Parse reads a theme. A malformed file is an error; colors and
// selectors that are not understood are left out.
func Parse(data []byte) (*Theme, error) {
	v, err := parsePlist(data)
	if err != nil {
		return nil, fmt.Errorf("no TextMate theme: %w", err)
	}
	top, _ := v.(dict)
	settings, ok := top["settings"].([]any)
	if !ok {
		return nil, errors.New("no TextMate theme: it has no array of settings")
	}
	t := &Theme{}
	t.name, _ = top["name"].(string)
	for _, s := range settings { // the background is needed for blending
		entry, _ := s.(dict)
		if _, scoped := entry["scope"]; scoped {
			continue
		}
		global, _ := entry["settings"].(dict)
		if c, _, ok := colorOf(global, "background"); ok {
			t.background = c
		}
		if c := t.color(global, "foreground"); c != nil {
			t.foreground = c
		}
	}
	for _, s := range settings {
		entry, _ := s.(dict)
		scope, _ := entry["scope"].(string)
		looks, _ := entry["settings"].(dict)
		t.add(scope, looks)
	}
	return t, nil
}

func colorOf(d dict, key string) (Color, uint8, bool) {
	text, _ := d[key].(string)
	return parseColor(text)
}

// color returns a color of a setting as it is seen, nil if it is not set.
func (t *Theme) color(d dict, key string) *Color {
	c, alpha, ok := colorOf(d, key)
	if !ok {
		return nil
	}
	c = c.blend(alpha, t.background)
	return &c
}

// add makes rules of a setting.
func (t *Theme) add(scope string, looks dict) {
	r := rule{color: t.color(looks, "foreground")}
	if text, ok := looks["fontStyle"].(string); ok {
		r.font = &font{}
		for word := range strings.FieldsSeq(text) {
			switch strings.ToLower(word) {
			case "bold":
				r.font.bold = true
			case "italic":
				r.font.italic = true
			case "underline":
				r.font.underline = true
			}
		}
	}
	if r.color == nil && r.font == nil {
		return
	}
	for selector := range strings.FieldsFuncSeq(scope, func(c rune) bool { return c == ',' || c == '|' }) {
		r := r
		minus := false
		for word := range strings.FieldsSeq(strings.Trim(selector, " ()\n\t")) {
			switch {
			case word == "-":
				minus = true
			case word == "&" || word == ">":
			case minus:
				r.without = append(r.without, word)
			default:
				r.path = append(r.path, word)
			}
		}
		if len(r.path) > 0 {
			t.rules = append(t.rules, r)
		}
	}
}

// Name returns the name that the theme gives itself.
func (t *Theme) Name() string { return t.name }

// Foreground returns the color of text that is nothing in particular; nil means that of
// the terminal.
func (t *Theme) Foreground() *Color { return t.foreground }

// Style returns the style of the first of the scopes, which are separated by spaces,
// that the theme has something to say about. within is the scope around them: source for
// code, text for prose. Without any, the style is the foreground.
func (t *Theme) Style(within, scopes string) Style {
	for scope := range strings.FieldsSeq(scopes) {
		if st, ok := t.lookup(within, scope); ok {
			return st
		}
	}
	return Style{Color: t.foreground}
}

// lookup returns the style of a scope. ok reports whether a rule is about the scope itself.
func (t *Theme) lookup(within, scope string) (st Style, ok bool) {
	st.Color = t.foreground
	var byColor, byFont score
	for i := range t.rules {
		r := &t.rules[i]
		s := r.matches(within, scope)
		if s == (score{}) {
			continue
		}
		ok = ok || s.own > 0
		if r.color != nil && !s.less(byColor) {
			byColor, st.Color = s, r.color
		}
		if r.font != nil && !s.less(byFont) {
			byFont = s
			st.Bold, st.Italic, st.Underline = r.font.bold, r.font.italic, r.font.underline
		}
	}
	return st, ok
}

// score says how particular a selector is: how many parts of the scope itself it names,
// then how many of the one around it.
type score struct{ own, around int }

func (s score) less(than score) bool {
	return s.own < than.own || s.own == than.own && s.around < than.around
}

// matches returns how particularly r is about a scope; the zero score means not at all.
func (r *rule) matches(within, scope string) score {
	for _, w := range r.without {
		if prefixes(w, scope) || prefixes(w, within) {
			return score{}
		}
	}
	last := r.path[len(r.path)-1]
	switch {
	case len(r.path) == 1 && prefixes(last, scope):
		return score{own: parts(last)}
	case len(r.path) == 1 && prefixes(last, within):
		return score{around: parts(last)}
	case len(r.path) == 2 && prefixes(r.path[0], within) && prefixes(last, scope):
		return score{own: parts(last), around: parts(r.path[0])}
	}
	return score{}
}

// prefixes reports whether selector names scope or something more general.
func prefixes(selector, scope string) bool {
	rest, ok := strings.CutPrefix(scope, selector)
	return ok && (rest == "" || rest[0] == '.')
}

func parts(scope string) int { return strings.Count(scope, ".") + 1 }

// Parameters returns the parameters of the escape sequence that switches the style on,
// such as 1;38;5;208; the empty string if it is that of the terminal. A terminal that
// does not have true colors gets those of xterm.
func (s Style) Parameters(trueColor bool) string {
	var list []string
	if s.Bold {
		list = append(list, "1")
	}
	if s.Italic {
		list = append(list, "3")
	}
	if s.Underline {
		list = append(list, "4")
	}
	if c := s.Color; c != nil {
		if trueColor {
			list = append(list, "38", "2", strconv.Itoa(int(c.R)), strconv.Itoa(int(c.G)), strconv.Itoa(int(c.B)))
		} else {
			list = append(list, "38", "5", strconv.Itoa(c.Index()))
		}
	}
	return strings.Join(list, ";")
}

//go:embed dark.tmTheme
var darkFile []byte

//go:embed light.tmTheme
var lightFile []byte

var (
	dark  = sync.OnceValue(func() *Theme { return mustParse(darkFile) })
	light = sync.OnceValue(func() *Theme { return mustParse(lightFile) })
)

// Dark returns the built-in theme for dark backgrounds.
func Dark() *Theme { return dark() }

// Light returns the built-in theme for light backgrounds.
func Light() *Theme { return light() }

// mustParse parses a theme of ours, which tests have read before.
func mustParse(data []byte) *Theme {
	t, err := Parse(data)
	if err != nil {
		panic(err)
	}
	return t
}
