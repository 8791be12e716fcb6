package wire

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loki/internal/llm/event/redact"
	"loki/internal/llm/provider"
)

// secrets are texts that must not be shown, longest first.
type secrets struct{ texts []string }

// minSecret is the length below which hiding a text would garble messages and
// protect nothing.
const minSecret = 4

// secretsIn returns what is secret in a request.
func secretsIn(req *http.Request) secrets {
	var s secrets
	for name, values := range req.Header {
		for _, v := range values {
			s.addField(name, v)
		}
	}
	for name, values := range req.URL.Query() {
		for _, v := range values {
			s.addField(name, v)
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		s.add(password)
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

// addField adds the value of a header field or a query parameter if those of that
// name hold secrets.
func (s *secrets) addField(name, value string) {
	if !redact.SecretField(name) {
		return
	}
	s.add(value)
	s.add(redact.Credential(value))
}

// mask replaces a secret.
const mask = "***"

// maskedURL returns u with the secrets of its query masked, and without user and fragment.
func maskedURL(u *url.URL, s secrets) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	query, masked := u.Query(), false
	for name := range query {
		if redact.SecretField(name) {
			query.Set(name, mask)
			masked = true
		}
	}
	if masked {
		shown.RawQuery = strings.ReplaceAll(query.Encode(), "%2A", "*")
	}
	return s.hide(shown.String())
}

// maskedHeaders returns h with the values of fields that hold secrets masked.
func maskedHeaders(h http.Header) map[string][]string {
	shown := make(map[string][]string, len(h))
	for name, values := range h {
		if redact.SecretField(name) {
			values = []string{mask}
		}
		shown[name] = values
	}
	return shown
}

// hide returns text with every secret replaced.
func (s secrets) hide(text string) string {
	for _, secret := range s.texts {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
}

// clean returns err with every secret replaced in its message and its cause.
// Errors that hold no [*provider.Error] wrap a context's error and nothing that a
// server said.
func (s secrets) clean(err error) error {
	switch e := err.(type) {
	case *Rejection:
		return &Rejection{Err: s.inError(e.Err), Body: e.Body}
	case *provider.Error:
		return s.inError(e)
	}
	return err
}

func (s secrets) inError(e *provider.Error) *provider.Error {
	clean := *e
	clean.Msg = s.hide(e.Msg)
	if e.Err != nil && s.hide(e.Err.Error()) != e.Err.Error() {
		clean.Err = errors.New(s.hide(e.Err.Error()))
	}
	return &clean
}
