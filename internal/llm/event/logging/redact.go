package logging

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/value"
)

// hidden replaces a secret.
const hidden = "[redacted]"

// redactor hides secrets: known ones, and what looks like a credential.
type redactor struct {
	hide   func(string) string // nil for none
	shapes func() *regexp.Regexp
}

func newRedactor(hide func(string) string) *redactor {
	return &redactor{hide: hide, shapes: sync.OnceValue(credentials)}
}

// credentials finds what follows a scheme of HTTP authentication, a key in a query,
// JSON or assignment, and keys with a well-known beginning. The first group is kept.
func credentials() *regexp.Regexp {
	const name = `(?:[a-z0-9_-]*(?:api[-_]?key|secret|password|passwd|access[-_]?token|auth[-_]?token)|authorization|token|key)`
	return regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{6,}` +
		`|([?&]` + name + `=)[^&\s"]+` +
		`|("` + name + `"\s*:\s*")(?:[^"\\]|\\.)+` +
		`|\bloki_[0-9a-f]{12}_[a-z0-9_-]{4,}` + // a key of a server
		`|\b(?:sk|pk|ghp|gho|xox[a-z])[-_][a-z0-9_-]{16,}` +
		`|\bAKIA[A-Z0-9]{12,}|\bAIza[a-z0-9_-]{20,}`)
}

// text hides the secrets in text.
func (r *redactor) text(text string) string {
	if r.hide != nil {
		text = r.hide(text)
	}
	return r.shapes().ReplaceAllString(text, "${1}${2}${3}"+hidden)
}

// value returns the text of an attribute's value, with the secrets in it hidden.
func (r *redactor) value(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().UTC().Format(time.RFC3339Nano)
	case slog.KindAny:
		return r.text(r.any(v.Any()))
	case slog.KindString:
		return r.text(v.String())
	}
	return v.String() // numbers, durations and booleans hold no secrets
}

func (r *redactor) any(x any) string {
	switch x := x.(type) {
	case value.Value:
		return conceal(x).String()
	case map[string]string:
		return fields(x, func(v string) string { return v })
	case map[string][]string:
		return fields(x, func(v []string) string { return strings.Join(v, ", ") })
	}
	return fmt.Sprintf("%+v", x)
}

// fields writes a map as {a=b c=d}, ascending, without the values of sensitive keys.
func fields[V any](m map[string]V, text func(V) string) string {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = appendWord(append(b, ' '), key)
		b = append(b, '=')
		if sensitive(key) {
			b = append(b, hidden...)
		} else {
			b = appendWord(b, text(m[key]))
		}
	}
	return "{" + strings.TrimPrefix(string(b), " ") + "}"
}

// conceal returns v without the values of sensitive members, at any depth.
func conceal(v value.Value) value.Value {
	if list, ok := v.AsList(); ok {
		items := make([]value.Value, 0, list.Len())
		for _, item := range list.All() {
			items = append(items, conceal(item))
		}
		return value.ListOf(items...).Value()
	}
	o := v.AsObject()
	if o == nil {
		return v
	}
	members := make([]value.Member, 0, o.Len())
	for name, member := range o.All() {
		if sensitive(name) {
			member = value.Of(hidden)
		}
		members = append(members, value.Member{Name: name, Value: conceal(member)})
	}
	return value.ObjectOf(members...).Value()
}

// separators takes out what separates the words of a name.
var separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// sensitive reports whether the name of a key says that its value is a secret. Names
// that count something, such as input_tokens, do not.
func sensitive(key string) bool {
	key = separators.Replace(strings.ToLower(key))
	switch key {
	case "key", "token", "auth", "cookie", "setcookie", "pwd", "passphrase":
		return true
	}
	for _, part := range [...]string{"apikey", "secret", "password", "passwd", "authorization", "credential", "privatekey", "accesskey"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return strings.HasSuffix(key, "token")
}
