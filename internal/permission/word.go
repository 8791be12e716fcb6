package permission

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hole stands for text that is not known in the text of a word. Shell texts that hold such a character are not
// analyzed.
const hole = '\x02'

// word is the knowledge about one word of a command after the shell has expanded it.
type word struct {
	text string // with a hole for each part that is not known
	glob bool   // text is a pattern that the shell replaces by names of files
	many bool   // it may become any number of words
}

// known reports whether the word is just its text.
func (w word) known() bool { return !w.glob && !w.many && strings.IndexByte(w.text, hole) < 0 }

// is reports whether the word is known to be text.
func (w word) is(text string) bool { return w.known() && w.text == text }

// isOption reports whether the word is an option, or may be one.
func (w word) isOption() bool {
	return w.many || w.text != "" && (w.text[0] == '-' || w.text[0] == hole || w.glob && strings.IndexByte("*?[", w.text[0]) >= 0)
}

// matches compares the word with a word of a pattern.
func (w word) matches(pattern string, fold bool) truth {
	text := w.text
	if fold {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	if w.known() {
		// A star in the word is only matched by a star, or by a quoted one.
		if glob(pattern, strings.ReplaceAll(text, "*", string(rune(literalStar)))) {
			return yes
		}
		return no
	}
	if strings.Trim(pattern, "*") == "" {
		return yes
	}
	// What comes before the first part that is not known has to agree.
	fixed := text
	if i := strings.IndexAny(fixed, "*?[\x02"); i >= 0 {
		fixed = fixed[:i]
	}
	before, _, _ := strings.Cut(pattern, "*")
	if n := min(len(fixed), len(before)); fixed[:n] != before[:n] {
		return no
	}
	if strings.HasSuffix(pattern, "*") && strings.Count(pattern, "*") == 1 && len(fixed) >= len(before) && !w.many {
		return yes
	}
	return maybe
}

// escaped matches a character that means itself.
var escaped = regexp.MustCompile(`(?s)\\.`)

// words evaluates a word to those that it becomes. Values of variables and the output of commands stay unknown.
func (a *analysis) words(w *syntax.Word) []word {
	var out word
	exists := false // a word comes of it even if it is empty
	literals := ""
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			literals += escaped.ReplaceAllString(lit.Value, "")
		}
	}
	if strings.Contains(literals, "{") && (strings.Contains(literals, ",") || strings.Contains(literals, "..")) && a.lang != syntax.LangPOSIX {
		return []word{{text: string(rune(hole)), many: true}} // what braces expand to is not looked at
	}
	for i, p := range w.Parts {
		exists = a.part(&out, p, i == 0, false) || exists
	}
	out.glob = out.glob && strings.ContainsAny(out.text, "*?]") // a bracket that nothing closes is one
	if out.text == "" && !exists {
		return nil
	}
	return []word{out}
}

// part adds a part of a word. It reports whether the part makes a word even if it is empty.
func (a *analysis) part(w *word, p syntax.WordPart, first, quoted bool) (exists bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		a.literal(w, p.Value, first, quoted)
		return false
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			w.text += string(rune(hole))
		} else {
			w.text += p.Value
		}
		return true
	case *syntax.DblQuoted:
		if p.Dollar { // translated by the locale
			w.text += string(rune(hole))
		}
		for _, inner := range p.Parts {
			a.part(w, inner, false, true)
		}
		return true
	case *syntax.ParamExp:
		if home := a.j.tree.home; p.Param != nil && p.Param.Value == "HOME" && p.Exp == nil && home != "" && (quoted || !strings.ContainsAny(home, " *?[")) {
			w.text += home
			return true
		}
	case *syntax.ProcSubst:
		w.text += "/dev/fd/63"
		return true
	}
	w.text += string(rune(hole))
	w.many = w.many || !quoted
	return true
}

// literal adds unquoted text, or text in double quotes.
func (a *analysis) literal(w *word, text string, first, quoted bool) {
	if !quoted && first && strings.HasPrefix(text, "~") {
		name, _, _ := strings.Cut(text, "/")
		if home := a.j.tree.home; name == "~" && home != "" {
			w.text = home
		} else {
			w.text = "/" + string(rune(hole)) // the directory of another user
		}
		text = text[len(name):]
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			i++
			continue
		case c == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\", text[i+1]) >= 0):
			i++
			c = text[i]
		case !quoted && strings.IndexByte("*?[", c) >= 0:
			w.glob = true
		}
		w.text += string([]byte{c})
	}
}

// programName returns the name by which a command's program is known: directories of the system are left out,
// others are not.
func programName(text string) string {
	switch dir, name := path.Split(text); dir {
	case "/bin/", "/usr/bin/":
		return name
	}
	return text
}
