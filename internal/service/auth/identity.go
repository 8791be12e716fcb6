package auth

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Anonymous is the subject of all requests to a server that asks for no key. No key may
// have it.
const Anonymous = "anonymous"

// Identity is who sends a request.
type Identity struct {
	Subject string
	KeyID   string // of the key, which is no secret; empty for [Anonymous]
	Scopes  []Scope
	Groups  []string  // that the subject belongs to, besides which it is one of its own
	Until   time.Time // when its token ends; zero for a key, which does not end by itself
}

// Nobody returns the identity of requests to a server that asks for no key. It is allowed
// everything.
func Nobody() Identity { return Identity{Subject: Anonymous, Scopes: []Scope{All}} }

// Anonymous reports whether who is unknown because the server asks for no key.
func (who Identity) Anonymous() bool { return who.Subject == Anonymous && who.KeyID == "" }

// Allows reports whether who may do what asks for scope. An empty scope asks for nothing.
func (who Identity) Allows(scope Scope) bool {
	return scope == "" || slices.ContainsFunc(who.Scopes, func(s Scope) bool { return s.covers(scope) })
}

// IsOneOf reports whether names, such as the assignees of a question, have the subject or one of its groups.
func (who Identity) IsOneOf(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name != "" && (name == who.Subject || slices.Contains(who.Groups, name))
	})
}

// CheckSubject returns what is wrong with the subject of a key, nil if nothing is: 1 to 128
// characters that can be printed, without a space at either end.
func CheckSubject(s string) error {
	switch {
	case s == "" || utf8.RuneCountInString(s) > maxSubject || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unprintable):
		return fmt.Errorf("want a subject of 1 to %d printable characters", maxSubject)
	case s == Anonymous:
		return fmt.Errorf("the subject %s is that of requests without a key", Anonymous)
	}
	return nil
}

const maxSubject = 128

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
