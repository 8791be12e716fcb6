package permission

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
)

// hole replaces unknown text in the text of a word. Shell texts that hold such a character are not
// analyzed.
const hole = '\x02'

// word is the knowledge about one word of a command after the shell has expanded it.
type word struct {
	text string // with a hole for each part that is not known
	glob bool   // text is a pattern that the shell replaces by names of files
	many bool   // it may become any number of words
}

// unknown is any number of words.
var unknown = word{text: string(rune(hole)), many: true}

// known reports whether the word is just its text.
func (w word) known() bool { return !w.glob && !w.many && strings.IndexByte(w.text, hole) < 0 }

// is reports whether the word is known to be text.
func (w word) is(text string) bool { return w.known() && w.text == text }

// isOption reports whether the word is an option, or may be one.
func (w word) isOption() bool {
	return w.many || w.text != "" && (w.text[0] == '-' || w.text[0] == hole || w.glob && strings.IndexByte("*?[", w.text[0]) >= 0)
}

// evaluated reports whether the word holds a command that a shell may run when it looks at it again.
func (w word) evaluated() bool {
	return strings.Contains(w.text, "$(") || strings.Contains(w.text, "`")
}

// matches compares the word with a word of a pattern.
func (w word) matches(p string, fold bool) truth {
	text := w.text
	if fold {
		p, text = strings.ToLower(p), strings.ToLower(text)
	}
	if w.known() {
		// A star in the word is only matched by a star, or by a quoted one.
		if pattern.Text(p, strings.ReplaceAll(text, "*", string(rune(literalStar)))) {
			return yes
		}
		return no
	}
	// What comes before the first part that is not known has to agree.
	fixed, before := text[:strings.IndexAny(text+"*", "*?[\x02")], p[:strings.IndexByte(p+"*", '*')]
	switch n := min(len(fixed), len(before)); {
	case fixed[:n] != before[:n]:
		return no
	case strings.Trim(p, "*") == "", strings.IndexByte(p, '*') == len(p)-1 && len(fixed) >= len(before) && !w.many:
		return yes
	}
	return maybe
}

// escaped matches a character that means itself.
var escaped = text.Regexp(`(?s)\\.`)

// words evaluates a word to the words that it becomes. Values of variables and the output of commands stay unknown.
func (a *analysis) words(w *syntax.Word) []word {
	literals := ""
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			literals += escaped().ReplaceAllString(lit.Value, "")
		}
	}
	if strings.Contains(literals, "{") && (strings.Contains(literals, ",") || strings.Contains(literals, "..")) && a.lang != syntax.LangPOSIX {
		return []word{unknown} // what braces expand to is not looked at
	}
	var out word
	exists := false // a word comes of it even if it is empty
	for i, p := range w.Parts {
		a.part(&out, p, i == 0, false)
		_, literal := p.(*syntax.Lit)
		exists = exists || !literal
	}
	out.glob = out.glob && strings.ContainsAny(out.text, "*?]") // a bracket that nothing closes is one
	if out.text == "" && !exists {
		return nil
	}
	return []word{out}
}

// part adds a part of a word.
func (a *analysis) part(w *word, p syntax.WordPart, first, quoted bool) {
	home := a.tree.home
	switch p := p.(type) {
	case *syntax.Lit:
		a.literal(w, p.Value, first, quoted)
		return
	case *syntax.SglQuoted:
		if !p.Dollar || !strings.Contains(p.Value, `\`) {
			w.text += p.Value
			return
		}
		quoted = true
	case *syntax.DblQuoted:
		if quoted = true; !p.Dollar { // else it is translated by the locale
			for _, inner := range p.Parts {
				a.part(w, inner, false, true)
			}
			return
		}
	case *syntax.ParamExp:
		if p.Param != nil && p.Param.Value == "HOME" && p.Exp == nil && home != "" && (quoted || !strings.ContainsAny(home, " *?[")) {
			w.text += home
			return
		}
	case *syntax.ProcSubst:
		w.text += "/dev/fd/63"
		return
	}
	w.text += string(rune(hole))
	w.many = w.many || !quoted
}

// literal adds unquoted text, or text in double quotes.
func (a *analysis) literal(w *word, text string, first, quoted bool) {
	if !quoted && first && strings.HasPrefix(text, "~") {
		name, _, _ := strings.Cut(text, "/")
		if w.text = a.tree.home; name != "~" || w.text == "" {
			w.text = "/" + string(rune(hole)) // the directory of another user
		}
		text = text[len(name):]
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0):
			if i++; text[i] == '\n' {
				continue
			}
		case !quoted && strings.IndexByte("*?[", c) >= 0:
			w.glob = true
		}
		w.text += text[i : i+1]
	}
}

// programName returns the name by which a command's program is known: directories of the system are left out,
// others are not.
func programName(text string) string {
	if dir, name := path.Split(text); dir == "/bin/" || dir == "/usr/bin/" {
		return name
	}
	return text
}

// truth is whether something holds that may not be known.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// literals counts the characters of a pattern that are not wildcards.
func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// Words of patterns, and what is in quotes in them.
var (
	patternWord = text.Regexp(`(?:'[^']*'?|"[^"]*"?|[^ \t'"])+`)
	quoted      = text.Regexp(`'[^']*'?|"[^"]*"?`)
)

// patternWords splits a command pattern at blanks. Quotes keep blanks and stars together.
func patternWords(pattern string) []string {
	words := patternWord().FindAllString(pattern, -1)
	for i, w := range words {
		words[i] = quoted().ReplaceAllStringFunc(w, func(q string) string {
			return strings.ReplaceAll(strings.Trim(q, q[:1]), "*", string(rune(literalStar)))
		})
	}
	return words
}

// literalStar replaces a star that is not a wildcard in the words of patterns and commands. Texts
// with such a character are not judged.
const literalStar = '\x01'

// matchWords matches the words of a command against those of a pattern. A word * matches
// any number of words; a star at the very end of the pattern covers all further words too.
// The answer is maybe if words that are not known could make it a match.
func matchWords(pattern []string, words []word, fold bool) (best truth) {
	switch {
	case len(pattern) == 0 && len(words) == 0, len(pattern) == 1 && pattern[0] == "*":
		return yes
	case len(pattern) > 0 && pattern[0] == "*":
		for i := 0; i <= len(words) && best != yes; i++ {
			best = max(best, matchWords(pattern[1:], words[i:], fold))
		}
		return best
	case len(pattern) == 0 || len(words) == 0:
		return no
	}
	here := words[0].matches(pattern[0], fold)
	if here == no || here == maybe && words[0].many || len(pattern) == 1 && strings.HasSuffix(pattern[0], "*") {
		return here // many may be any number of words
	}
	return min(here, matchWords(pattern[1:], words[1:], false))
}
