package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"loki/internal/base/text"
)

const (
	maxName = 64 // of a function, with every provider
	maxSlug = 40 // leaves room for the longest prefix and some of a tool's name
)

// setSlugs sets the slug of each server, which replaces its id in the names of functions.
// If ids have the same slug, the first gets the plain one.
func setSlugs(servers []Server) {
	taken := make(map[string]bool, len(servers))
	for i := range servers {
		servers[i].slug = unique(slugOf(servers[i].ID), maxSlug, servers[i].ID, taken)
	}
}

// MayOffer reports whether a function of that name may belong to the server.
func (s Server) MayOffer(function string) bool {
	rest, ok := strings.CutPrefix(function, "mcp__")
	if !ok || s.slug == "" {
		return false
	}
	if strings.HasPrefix(rest, s.slug+"__") {
		return true
	}
	for _, verb := range verbs {
		if of, ok := strings.CutPrefix(rest, verb+"_"); ok && strings.HasPrefix(of, s.slug) {
			return true
		}
	}
	return false
}

// Through returns the function through which the tool that another name would mean is called, and the name of the tool: the server
// has functions that search, describe and invoke its tools. Both are empty for other names.
func (f *File) Through(function string) (invoke, tool string) {
	for _, s := range f.Servers {
		rest, ok := strings.CutPrefix(function, "mcp__"+s.slug+"__")
		if ok && rest != "" && s.slug != "" && s.Expose == Meta && !s.Disabled {
			return "mcp__invoke_" + s.slug, rest
		}
	}
	return "", ""
}

// slugOf returns the text that replaces a server's id in the names of functions. It has
// no two underscores in a row, since those separate a server and its tool. It does not
// begin with the prefix of a function that Loki has for a server: mcp__search_x always
// searches the server x.
func slugOf(id string) string {
	slug := strings.Trim(underscores().ReplaceAllString(legal(id), "_"), "_")
	for _, verb := range verbs {
		if rest, ok := strings.CutPrefix(slug, verb+"_"); ok {
			return verb + "-" + rest
		}
	}
	return slug
}

var underscores = text.Regexp(`__+`)

// verbs are the prefixes of the functions that Loki has for a server.
var verbs = [...]string{"invoke", "search", "describe", "resources"}

// legal replaces characters that providers refuse in names.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// unique returns name, cut to limit, in a form that is not taken yet, and takes it. A
// name that is too long or taken ends in a few digits made from origin, so that it does
// not depend on other names.
func unique(name string, limit int, origin string, taken map[string]bool) string {
	candidate := name
	for salt := origin; len(candidate) > limit || taken[candidate] || candidate == ""; salt += "\x00" {
		sum := sha256.Sum256([]byte(salt))
		tail := "_" + hex.EncodeToString(sum[:3])
		candidate = strings.TrimRight(name[:min(len(name), limit-len(tail))], "_") + tail
	}
	taken[candidate] = true
	return candidate
}
