package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// term is a word or a phrase of a query.
type term struct {
	words   []string // at least one
	prefix  bool     // the last word may be incomplete
	without bool     // texts with it are left out
}

// shortestPrefix is the length of the shortest word, in characters, that finds longer ones. Shorter ones begin
// too many.
const shortestPrefix = 3

// parse reads a query. What is no query is text: there are no errors.
func parse(text string) (terms []term) {
	for text = skip(text); text != ""; text = skip(text) {
		var t term
		if rest, ok := strings.CutPrefix(text, "-"); ok && rest != "" && !unicode.IsSpace(first(rest)) {
			t.without, text = true, rest
		}
		var said string
		if rest, ok := strings.CutPrefix(text, `"`); ok {
			said, text, _ = strings.Cut(rest, `"`)
		} else {
			end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(text)
			}
			said, text = text[:end], text[end:]
			last, _ := utf8.DecodeLastRuneInString(said)
			t.prefix = inWord(last) && !unicode.Is(unspaced, last)
		}
		if t.words = words(said); len(t.words) > 0 {
			t.prefix = t.prefix && (len(t.words) > 1 || utf8.RuneCountInString(t.words[0]) >= shortestPrefix)
			terms = append(terms, t)
		}
	}
	return terms
}

func skip(text string) string { return strings.TrimLeftFunc(text, unicode.IsSpace) }

func first(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// requiredTerms returns the terms that a text has to have.
func requiredTerms(terms []term) (list []term) {
	for _, t := range terms {
		if !t.without {
			list = append(list, t)
		}
	}
	return list
}

// expression returns the terms in the language of FTS5, "" if nothing can be looked for. Words are
// letters and digits, so nothing in them has a meaning there.
func expression(terms []term) string {
	var with, without []string
	for _, t := range terms {
		e := `"` + strings.Join(t.words, " ") + `"`
		if t.prefix {
			e += " *"
		}
		if t.without {
			without = append(without, e)
		} else {
			with = append(with, e)
		}
	}
	if len(with) == 0 {
		return ""
	}
	e := "(" + strings.Join(with, " AND ") + ")"
	if len(without) > 0 {
		e += " NOT (" + strings.Join(without, " OR ") + ")"
	}
	return e
}

// at reports whether the term is at position i of the words of a text.
func (t term) at(list []place, i int) bool {
	if i+len(t.words) > len(list) {
		return false
	}
	for n, w := range t.words {
		there := list[i+n].word
		if there != w && (!t.prefix || n < len(t.words)-1 || !strings.HasPrefix(there, w)) {
			return false
		}
	}
	return true
}
