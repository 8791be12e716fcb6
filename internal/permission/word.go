package permission

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hole stands for text that is not known in the text of a word. Shell texts that hold
// such a character are not analysed.
const hole = '\x02'

// word is the knowledge about one word of a command after the shell has expanded it.
type word struct {
	// text is the word, with a hole for each part that is not known. Where glob is set
	// it is a pattern that the shell replaces by the names of files.
	text    string
	glob    bool
	many    bool // it may become any number of words
	numeric bool // what is not known are digits, perhaps after a minus sign
	found   bool // it names an ordinary file below the directory, which find found
}

// known reports whether the word is just its text.
func (w word) known() bool { return !w.glob && !w.many && strings.IndexByte(w.text, hole) < 0 }

// is reports whether the word is known to be text.
func (w word) is(text string) bool { return w.known() && w.text == text }

// matches compares the word with a word of a pattern.
func (w word) matches(pattern string, fold bool) truth {
	text := w.text
	if fold {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	if w.known() {
		if strings.IndexByte(text, '*') >= 0 {
			text = strings.ReplaceAll(text, "*", string(rune(literalStar)))
			if p := strings.ReplaceAll(pattern, "*", ""); strings.Trim(p, string(rune(literalStar))) == "" && strings.HasSuffix(pattern, "*") {
				return yes
			}
		}
		if glob(pattern, text) {
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

// isOption reports whether the word is an option, or may be one.
func (w word) isOption() bool {
	if w.text == "" {
		return w.many
	}
	switch w.text[0] {
	case '-', hole:
		return true
	case '*', '?', '[':
		return w.glob
	}
	return false
}

// expansion evaluates words.
type expansion struct {
	a    *analysis
	bind map[string][]word // values chosen for variables
}

// words evaluates a word to those that it becomes.
func (e expansion) words(w *syntax.Word) []word {
	if e.a.lang != syntax.LangPOSIX && hasBrace(w) {
		return e.braces(w)
	}
	return e.fields(w)
}

// hasBrace reports whether a word may be subject to brace expansion.
func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") && lit.Value != "{}" {
			return true
		}
	}
	return false
}

// braces expands {a,b}. Sequences and what would become too many words stay unknown.
func (e expansion) braces(w *syntax.Word) []word {
	commas := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			commas += strings.Count(lit.Value, ",")
			if strings.Contains(lit.Value, "..") && strings.Contains(lit.Value, "{") {
				return []word{{text: string(rune(hole)), many: true}}
			}
		}
	}
	if commas > 8 {
		return []word{{text: string(rune(hole)), many: true}}
	}
	split := *w
	split.Parts = append([]syntax.WordPart(nil), w.Parts...)
	var out []word
	if !syntax.SplitBraces(&split) {
		return e.fields(w)
	}
	for _, parts := range alternatives(split.Parts) {
		out = append(out, e.fields(&syntax.Word{Parts: parts})...)
	}
	return out
}

// alternatives returns the words that parts with lists in braces stand for.
func alternatives(parts []syntax.WordPart) [][]syntax.WordPart {
	all := [][]syntax.WordPart{nil}
	for _, p := range parts {
		choices := [][]syntax.WordPart{{p}}
		if list, ok := p.(*syntax.BraceExp); ok {
			choices = nil
			for _, element := range list.Elems {
				choices = append(choices, alternatives(element.Parts)...)
			}
		}
		var next [][]syntax.WordPart
		for _, before := range all {
			for _, c := range choices {
				next = append(next, slices.Concat(before, c))
			}
		}
		all = next
	}
	return all
}

// fields evaluates a word without braces.
func (e expansion) fields(w *syntax.Word) []word {
	f := fields{e: e}
	for i, p := range w.Parts {
		f.part(p, i == 0, false)
	}
	f.end(false)
	return f.done
}

// fields collects the words that a word is split into.
type fields struct {
	e    expansion
	done []word
	cur  word
	open bool // cur has begun
}

func (f *fields) add(text string) {
	f.cur.text += text
	f.open = true
}

func (f *fields) unknown(many bool) {
	f.add(string(rune(hole)))
	f.cur.many = f.cur.many || many
	f.cur.numeric = false
}

func (f *fields) end(empty bool) {
	if f.cur.glob && !strings.ContainsAny(f.cur.text, "*?]\\") {
		f.cur.glob = false // a bracket that nothing closes
	}
	if f.open || empty {
		f.done = append(f.done, f.cur)
	}
	f.cur, f.open = word{}, false
}

func (f *fields) part(p syntax.WordPart, first, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		f.literal(p.Value, first, quoted)
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			f.unknown(false)
			return
		}
		f.quoted(p.Value)
	case *syntax.DblQuoted:
		f.open = true
		if p.Dollar { // translated by the locale
			f.unknown(false)
			return
		}
		for _, inner := range p.Parts {
			f.part(inner, false, true)
		}
	case *syntax.ParamExp:
		f.parameter(p, quoted)
	case *syntax.CmdSubst:
		if dir, ok := f.e.a.printsDirectory(p); ok {
			f.quoted(dir)
			return
		}
		f.unknown(!quoted)
	case *syntax.ArithmExp:
		numeric := f.cur.text == "" || f.cur.numeric
		f.unknown(false)
		f.cur.numeric = numeric
	case *syntax.ProcSubst:
		f.quoted("/dev/fd/63")
	default:
		f.unknown(true)
	}
}

// quoted adds text that the shell takes as it is.
func (f *fields) quoted(text string) {
	f.open = true
	if f.cur.glob {
		text = escapeGlob(text)
	}
	f.add(text)
}

// literal adds unquoted text, or text in double quotes.
func (f *fields) literal(text string, first, quoted bool) {
	if !quoted && first && strings.HasPrefix(text, "~") {
		name, rest, _ := strings.Cut(text, "/")
		home := f.e.a.j.tree.home
		if name != "~" || home == "" {
			f.add("/" + string(rune(hole))) // the directory of another user
		} else {
			f.add(home)
		}
		if len(rest) > 0 || strings.HasSuffix(text, "/") {
			f.literal("/"+rest, false, false)
		}
		return
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			next := text[i+1]
			switch {
			case next == '\n':
				i++
				continue
			case !quoted, strings.IndexByte("$`\"\\", next) >= 0:
				i++
				if strings.IndexByte("*?[", next) >= 0 {
					b.WriteByte('\\')
				}
				b.WriteByte(next)
				continue
			}
		}
		if !quoted && strings.IndexByte("*?[", c) >= 0 {
			f.cur.glob = true
		}
		b.WriteByte(c)
	}
	out := b.String()
	if !f.cur.glob {
		out = strings.NewReplacer(`\*`, "*", `\?`, "?", `\[`, "[").Replace(out)
	}
	f.add(out)
}

// parameter adds the value of a variable.
func (f *fields) parameter(p *syntax.ParamExp, quoted bool) {
	if !simple(p) {
		if p.Length && p.Param != nil {
			f.cur.numeric = f.cur.text == ""
			f.add(string(rune(hole)))
			return
		}
		f.unknown(!quoted)
		return
	}
	switch name := p.Param.Value; name {
	case "?", "#", "$", "!":
		numeric := f.cur.text == "" || f.cur.numeric
		f.add(string(rune(hole)))
		f.cur.numeric = numeric
	case "HOME":
		if home := f.e.a.j.tree.home; home != "" && !f.e.a.assigned(name) && (quoted || !strings.ContainsAny(home, " *?[")) {
			f.quoted(home)
			return
		}
		f.unknown(!quoted)
	case "PWD":
		if dir, ok := f.e.a.directory(); ok && !f.e.a.assigned(name) && (quoted || !strings.ContainsAny(dir, " *?[")) {
			f.quoted(dir)
			return
		}
		f.unknown(!quoted)
	default:
		value, ok := f.e.bind[name]
		if !ok || len(value) != 1 || value[0].many {
			f.unknown(!quoted)
			return
		}
		f.value(value[0], quoted)
	}
}

// value adds a value that is known.
func (f *fields) value(v word, quoted bool) {
	if !quoted && v.known() && strings.ContainsAny(v.text, "*?[") {
		v.glob = true
	}
	if quoted || !v.known() || !strings.ContainsAny(v.text, " \t\n") {
		if v.glob && !f.cur.glob {
			f.cur.glob = true
		}
		f.cur.numeric = v.numeric && f.cur.text == ""
		if v.text != "" || quoted {
			f.add(v.text)
		}
		return
	}
	parts := strings.FieldsFunc(v.text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	for i, part := range parts {
		if i > 0 || strings.ContainsRune(" \t\n", rune(v.text[0])) {
			f.end(false)
		}
		f.add(part)
	}
	if strings.ContainsRune(" \t\n", rune(v.text[len(v.text)-1])) {
		f.end(false)
	}
}

// simple reports whether a parameter is expanded to its value and nothing else.
func simple(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Split == syntax.OptUnset && p.GlobSubst == syntax.OptUnset && p.RcExpand == syntax.OptUnset &&
		p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil &&
		p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// programName returns the name by which a command's program is known: directories of the
// system are left out, others are not.
func programName(text string) string {
	switch dir, name := path.Split(text); dir {
	case "/bin/", "/usr/bin/":
		return name
	}
	return text
}
