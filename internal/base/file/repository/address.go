package repository

import (
	"encoding/base64"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"loki/internal/base/text"
)

// Address says where a repository is. The zero Address is none.
type Address struct {
	url    string // as git gets it, without a password
	header string // that proves who the user is, for HTTP; empty without a password
}

// shortForm is an address such as git@host:path, which means SSH.
var shortForm = text.Regexp(`^(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9._-]+:[^:-]`)

// schemes are the ones that git itself serves, so that no other program is started.
var schemes = []string{"https", "http", "ssh", "git", "file"}

// ParseAddress reads the address of a repository: scheme://..., user@host:path, or the absolute
// path of a directory. A password in it, or a token in place of the name of the user, is separated
// from the rest. The error says what is wrong with the address, and does not repeat it.
func ParseAddress(text string) (Address, error) {
	scheme, rest, isURL := strings.Cut(text, "://")
	host, path, _ := strings.Cut(rest, "/")
	switch {
	case strings.HasPrefix(text, "-"):
		return Address{}, errors.New("an address does not begin with -")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) }):
		return Address{}, errors.New("it contains a control character")
	case isURL && !slices.Contains(schemes, scheme):
		return Address{}, errors.New("git is not asked for " + scheme + " addresses, only for " + strings.Join(schemes, ", "))
	case isURL:
		user, name := "", host
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			user, name = host[:i], host[i+1:]
		}
		if strings.HasPrefix(name, "-") || strings.HasPrefix(user, "-") {
			return Address{}, errors.New("the name of a host does not begin with -")
		}
		return withoutUser(scheme, user, name, strings.TrimPrefix(rest, host), path), nil
	case shortForm().MatchString(text):
		return Address{url: text}, nil
	case filepath.IsAbs(text):
		return Address{url: "file://" + filepath.ToSlash(text)}, nil
	}
	return Address{}, errors.New("it is not the address of a repository")
}

// withoutUser returns the address without what must not be shown.
func withoutUser(scheme, user, host, slashed, path string) Address {
	name, _, _ := strings.Cut(user, ":")
	a := Address{url: scheme + "://" + host + slashed}
	switch {
	case user == "" || path == "":
	case scheme == "ssh":
		a.url = scheme + "://" + name + "@" + host + slashed
	case scheme == "http" || scheme == "https":
		if plain, err := url.PathUnescape(user); err == nil {
			user = plain
		}
		if !strings.Contains(user, ":") {
			user += ":"
		}
		a.header = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user))
	}
	return a
}

// String returns the address without passwords and tokens.
func (a Address) String() string { return a.url }

// IsLocal reports whether the repository is on this machine.
func (a Address) IsLocal() bool { return strings.HasPrefix(a.url, "file://") }

// origin returns scheme://host/ of an address of the web.
func (a Address) origin() string {
	scheme, rest, _ := strings.Cut(a.url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/"
}
