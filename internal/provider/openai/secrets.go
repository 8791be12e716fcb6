package openai

import (
	"errors"
	"slices"
	"strings"

	"loki/internal/provider"
)

// secrets are texts that must not be shown, longest first.
type secrets struct{ texts []string }

// minSecret is the length below which hiding a text would garble messages and
// protect nothing.
const minSecret = 4

func secretsOf(texts ...string) secrets {
	var s secrets
	for _, t := range texts {
		s.add(t)
	}
	return s
}

func (s *secrets) add(text string) {
	if len(text) < minSecret || slices.Contains(s.texts, text) {
		return
	}
	s.texts = append(s.texts, text)
	// A secret may hold another, which must not be replaced first.
	slices.SortStableFunc(s.texts, func(a, b string) int { return len(b) - len(a) })
}

// addField adds the value of a header field if fields of that name hold secrets.
func (s *secrets) addField(name, value string) {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "key", "token", "secret", "cookie", "password"} {
		if strings.Contains(name, part) {
			s.add(value)
			if _, credential, ok := strings.Cut(value, " "); ok { // after a scheme such as Bearer
				s.add(strings.TrimSpace(credential))
			}
			return
		}
	}
}

// hide returns text with every secret replaced.
func (s secrets) hide(text string) string {
	for _, secret := range s.texts {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// inError returns err with every secret replaced in its message and its cause.
// Errors that are no [*provider.Error] wrap a context's error and hold nothing
// that a server said.
func (s secrets) inError(err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return err
	}
	clean := *e
	clean.Msg = s.hide(e.Msg)
	if e.Err != nil && s.hide(e.Err.Error()) != e.Err.Error() {
		clean.Err = errors.New(s.hide(e.Err.Error()))
	}
	return &clean
}
