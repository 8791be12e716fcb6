// Package redact keeps the secrets that a process has used out of what is kept or shown.
//
// [Secrets] knows them by name. Its Text replaces each in a text by a mark with its name,
// ***NAME***; [Secrets.Emitter] does so for events. What is shown, logged, exported or kept in
// a session passes one of the two.
//
// A run resumes from its record, which needs the secret itself. It is sealed:
// [Secrets.Seal] writes the same marks, in a form that [Unseal] can take back with the help of
// where the secret is kept. A text that only looks like a mark is escaped, so that what a
// model writes never becomes a secret.
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"loki/internal/base/text"
)

// Secrets are the ones that a process has used. The zero Secrets has none and is ready; so is a
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

// Add makes a secret known under a name. One that is so short that other text may hold it, or
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

// All returns the secrets by their names as in marks, for a process that replaces them, too.
func (s *Secrets) All() map[string]string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
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
	return s.table.Load().replace(text, found.mark, nil)
}

// Seal is [Secrets.Text] for a text that [Unseal] will read.
func (s *Secrets) Seal(text string) string {
	if s == nil {
		return escape(text)
	}
	t := s.table.Load()
	sealed := t.replace(text, found.seal, escape)
	if sealed == text || Unseal(sealed, s.Lookup) == text {
		return sealed
	}
	// Text beside a secret makes a mark of its own with it. It is changed: the secret counts.
	return t.replace(text, found.seal, func(literal string) string {
		return strings.ReplaceAll(literal, "***", "* * *")
	})
}

// marks finds marks, and what was escaped to be none.
var marks = text.Regexp(`\*\*\*(!*)([A-Za-z0-9_.:@-]+)(?:/(\d+)(?:\.([0-9a-f]*)\.([0-9a-f]*))?)?\*\*\*`)

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
		parts := marks().FindStringSubmatch(m)
		secret, ok := look(parts[2])
		if !ok {
			return m
		}
		n, _ := strconv.Atoi(parts[3])
		before, err1 := hex.DecodeString(parts[4])
		after, err2 := hex.DecodeString(parts[5])
		if all := variants(secret); n < len(all) && err1 == nil && err2 == nil {
			return string(before) + all[n] + string(after)
		}
		return m
	})
}

// markName returns a name as marks have it.
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

// firstLine is which of the variants of a secret of several lines is its first line.
const firstLine = 7

// minLine is the least length of a line of a secret that is replaced by itself, in bytes.
const minLine = 16

// variants returns the forms in which a secret appears, always in the same order: as it is, in
// JSON without and with the escapes of HTML, in JSON within JSON, in a query, in a path, in
// base64, its lines, in JSON within JSON with the escapes of HTML in one or both, and those of encoded. Some are the same.
func variants(secret string) []string {
	plain, html := quotedContent(secret, false), quotedContent(secret, true)
	all := []string{
		secret, plain, html, quotedContent(plain, false), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
	}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	all = append(all, quotedContent(plain, true), quotedContent(html, false), quotedContent(html, true)) // places are on record: these came later
	return append(all, encodedForms(secret, plain)...)
}

// encodedForms returns more forms of a secret, which is plain in JSON: with other rules for URLs, in base64 of either alphabet without padding, alone
// and as a part of something longer, and in JSON of ASCII. In base64 a part looks different for each rest of its place by 3,
// and the characters that it shares with its neighbors are left out.
func encodedForms(secret, plain string) []string {
	query, path := url.QueryEscape(secret), url.PathEscape(secret)
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query) // of JavaScript
	all := []string{component, lowerHex(query), lowerHex(path), lowerHex(component)}
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, e.EncodeToString([]byte(secret)))
		for before := range 3 {
			text := e.EncodeToString(append(make([]byte, before), secret...))
			all = append(all, text[(before*8+5)/6:(before+len(secret))*8/6])
		}
	}
	ascii := inASCII(plain)
	return append(all, ascii, quotedContent(ascii, false))
}

// lowerHex returns a text of a URL with small letters in its escapes.
func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i := range b {
		if i > 0 && b[i-1] == '%' || i > 1 && b[i-2] == '%' {
			b[i] |= 'a' - 'A' // a digit stays
		}
	}
	return string(b)
}

// inASCII returns a text of JSON with escapes for other characters than those of ASCII.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// quotedContent returns what stands between the quotes of a JSON string.
func quotedContent(text string, html bool) string {
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

// found is a form of a secret in a text, with what must be replaced together with it.
type found struct {
	form
	before, after string
}

// mark returns what replaces a secret.
func (f found) mark() string { return "***" + f.name + "***" }

// seal returns what replaces this form of a secret, with what is around it.
func (f found) seal() string {
	around := ""
	if f.before != "" || f.after != "" {
		around = "." + hex.EncodeToString([]byte(f.before)) + "." + hex.EncodeToString([]byte(f.after))
	}
	if f.variant == 0 && around == "" {
		return f.mark()
	}
	return "***" + f.name + "/" + strconv.Itoa(f.variant) + around + "***"
}

// widen returns where text[from:to] begins and ends once the escape sequences of JSON that it
// cuts in two are part of it. In "\token" the secret may be token, but the text is JSON only as
// long as the backslash has its t. What is before start is not looked at.
func widen(text string, start, from, to int) (wideFrom, wideTo int) {
	wideFrom, wideTo = from, to
	for i := from - 1; i >= max(start, from-len(`\u000`)); i-- {
		if text[i] == '\\' {
			escape := text[i+1 : from]
			if backslashes(text[start:i+1])%2 == 1 && (escape == "" && strings.IndexByte(`"\/bfnrtu`, text[from]) >= 0 || escape != "" && escape[0] == 'u') {
				wideFrom = i
			}
			break
		}
	}
	if to < len(text) && (text[to] == '"' || text[to] == '\\') && backslashes(text[start:to])%2 == 1 {
		wideTo++
	}
	return wideFrom, wideTo
}

// backslashes returns how many of them text ends with.
func backslashes(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// table is what is replaced, the longer first. It is immutable; nil replaces nothing.
type table struct{ forms []form }

func (t *table) with(name, secret string) *table {
	more := new(table)
	if t != nil {
		more.forms = slices.Clone(t.forms)
	}
	lines := strings.Count(secret, "\n") + 1
	for i, text := range variants(secret) {
		if i >= firstLine && i < firstLine+lines && len(text) < minLine && lines > 1 || len(text) < minLength || slices.ContainsFunc(more.forms, func(f form) bool { return f.text == text }) {
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
func (t *table) replace(text string, by func(found) string, literal func(string) string) string {
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
		end := at + len(f.text)
		from, to := widen(text, pos, at, end)
		b.WriteString(literal(text[pos:from]))
		b.WriteString(by(found{f, text[from:at], text[end:to]}))
		pos = to
		at, f, ok = in.next(pos)
	}
	b.WriteString(literal(text[pos:]))
	return b.String()
}
