// Package redact keeps the secrets that a process has used out of what is kept or shown.
//
// [Secrets] knows them by name. Its Text replaces each in a text by a mark with its name,
// ***NAME***; [Secrets.Emitter] does so for events. What is shown, logged, exported or kept in
// a session passes one of the two.
//
// The record of a run has to let the run go on, which needs the secret itself. It is sealed:
// [Secrets.Seal] writes the same marks, in a form that [Unseal] can take back with the help of
// where the secret is kept. A text that only looks like a mark is told apart, so that what a
// model writes never becomes a secret.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Secrets are those that a process has used. The zero Secrets has none and is ready; so is a
// nil one, which replaces nothing. Its methods may be called from several goroutines.
type Secrets struct {
	mu     sync.Mutex
	values map[string]string // by name as in marks; guarded by mu
	table  atomic.Pointer[table]
}

// minLength is the least length of a secret that is replaced, in bytes. A shorter one would
// be found in texts that have nothing to do with it.
const minLength = 6

// dummies are what users write where a server wants some key and takes any.
var dummies = []string{
	"ollama", "lm-studio", "lmstudio", "llamacpp", "llama.cpp", "localai", "vllm", "not-needed", "notneeded", "no-key", "no-key-required", "sk-no-key-required",
	"dummy-key", "local-key", "localhost", "placeholder", "password", "api-key", "api_key", "your-api-key", "unused", "anything", "whatever",
}

// Add makes a secret known under a name. One that is too short to be told from other text, or
// that is a usual stand-in for a key, is left out. Of two with one name the later counts for
// [Unseal], but both are replaced.
func (s *Secrets) Add(name, secret string) {
	if len(secret) < minLength || slices.Contains(dummies, strings.ToLower(secret)) {
		return
	}
	name = markName(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[name] == secret {
		return
	}
	if s.values == nil {
		s.values = make(map[string]string)
	}
	s.values[name] = secret
	s.table.Store(s.table.Load().with(name, secret))
}

// Lookup returns the secret that is known under a name, as marks have it.
func (s *Secrets) Lookup(name string) (secret string, ok bool) {
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, ok = s.values[name]
	return secret, ok
}

// Text returns text with a mark in place of each secret, also where it is escaped for JSON or
// a URL, or encoded in base64.
func (s *Secrets) Text(text string) string {
	if s == nil {
		return text
	}
	return s.table.Load().replace(text, func(f form) string { return mark(f.name, 0) }, nil)
}

// Seal is [Secrets.Text] for a text that [Unseal] will read.
func (s *Secrets) Seal(text string) string {
	if s == nil {
		return escape(text)
	}
	t := s.table.Load()
	sealed := t.replace(text, func(f form) string { return mark(f.name, f.variant) }, escape)
	if sealed == text || Unseal(sealed, s.Lookup) == text {
		return sealed
	}
	// Text beside a secret makes a mark of its own with it. It is changed: the secret counts.
	return t.replace(text, func(f form) string { return mark(f.name, f.variant) }, func(literal string) string {
		return strings.ReplaceAll(literal, "***", "* * *")
	})
}

// marks finds marks, and what was escaped to be none.
var marks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\*\*\*(!*)([A-Za-z0-9_.:@-]+)(?:/(\d+))?\*\*\*`)
})

// escape makes what looks like a mark differ from one.
func escape(text string) string {
	if !strings.Contains(text, "***") {
		return text
	}
	return marks().ReplaceAllStringFunc(text, func(m string) string { return "***!" + m[3:] })
}

// Unseal returns what [Secrets.Seal] was given. look returns the secret of a name as marks have
// it; a mark whose name it does not know stays. A nil look knows none, which gives the text for
// people to read.
func Unseal(text string, look func(name string) (secret string, ok bool)) string {
	if !strings.Contains(text, "***") {
		return text
	}
	return marks().ReplaceAllStringFunc(text, func(m string) string {
		if m[3] == '!' {
			return "***" + m[4:]
		}
		if look == nil {
			return m
		}
		name, variant, _ := strings.Cut(m[3:len(m)-3], "/")
		secret, ok := look(name)
		if !ok {
			return m
		}
		n, _ := strconv.Atoi(variant)
		if all := variants(secret); n < len(all) {
			return all[n]
		}
		return m
	})
}

// mark stands for a secret, or for a variant of it.
func mark(name string, variant int) string {
	if variant > 0 {
		name += "/" + strconv.Itoa(variant)
	}
	return "***" + name + "***"
}

// markName returns a name as it stands in marks.
func markName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.:@-", r) {
			return r
		}
		return '_'
	}, name)
}

// SameName reports whether a name of a secret is one that marks have as marked.
func SameName(name, marked string) bool { return markName(name) == marked }

// minLine is the least length of a line of a secret that is replaced by itself, in bytes.
const minLine = 16

// variants returns the forms in which a secret appears, always in the same order: as it is, in
// JSON without and with the escapes of HTML, in JSON within JSON, in a query, in a path, in
// base64, and its lines. Some are the same.
func variants(secret string) []string {
	plain := quoted(secret, false)
	all := []string{
		secret, plain, quoted(secret, true), quoted(plain, false), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
	}
	if !strings.Contains(secret, "\n") {
		return all
	}
	for line := range strings.Lines(secret) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// quoted returns what stands between the quotes of a JSON string.
func quoted(text string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string can be encoded
	line := strings.TrimSuffix(b.String(), "\n")
	return line[1 : len(line)-1]
}

// form is one form of a secret.
type form struct {
	text    string
	name    string
	variant int
}

// table is what is replaced, the longer first. It is immutable; nil replaces nothing.
type table struct{ forms []form }

func (t *table) with(name, secret string) *table {
	more := new(table)
	if t != nil {
		more.forms = slices.Clone(t.forms)
	}
	for i, text := range variants(secret) {
		if i >= 7 && len(text) < minLine || slices.ContainsFunc(more.forms, func(f form) bool { return f.text == text }) {
			continue
		}
		more.forms = append(more.forms, form{text, name, i})
	}
	slices.SortStableFunc(more.forms, func(a, b form) int { return len(b.text) - len(a.text) })
	return more
}

// search finds the forms of a table in a text, one after the other. Each form is looked for
// from where it was found last, so that a text is read once for each.
type search struct {
	text  string
	forms []form
	at    []int // where the form is next; -1 for nowhere
}

func (t *table) search(text string) *search {
	s := &search{text: text}
	if t != nil {
		s.forms = t.forms
	}
	for _, f := range s.forms {
		s.at = append(s.at, strings.Index(text, f.text))
	}
	return s
}

// next returns the first form from pos on, the longest of several, and where it is.
func (s *search) next(pos int) (at int, found form, ok bool) {
	for i, f := range s.forms {
		if s.at[i] >= 0 && s.at[i] < pos {
			if s.at[i] = strings.Index(s.text[pos:], f.text); s.at[i] >= 0 {
				s.at[i] += pos
			}
		}
		if s.at[i] >= 0 && (!ok || s.at[i] < at) {
			at, found, ok = s.at[i], f, true
		}
	}
	return at, found, ok
}

// replace puts the text that by returns in place of each form. What is between them passes
// literal, unless that is nil.
func (t *table) replace(text string, by func(form) string, literal func(string) string) string {
	if literal == nil {
		literal = func(s string) string { return s }
	}
	in := t.search(text)
	at, f, ok := in.next(0)
	if !ok {
		return literal(text)
	}
	var b strings.Builder
	pos := 0
	for ok {
		b.WriteString(literal(text[pos:at]))
		b.WriteString(by(f))
		pos = at + len(f.text)
		at, f, ok = in.next(pos)
	}
	b.WriteString(literal(text[pos:]))
	return b.String()
}
