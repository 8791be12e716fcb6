package redact

import (
	"net/url"
	"slices"
	"strings"

	"loki/internal/base/text"
)

// Part is a secret that an address of a database spells out.
type Part struct {
	Name  string // "password" or another parameter, in lower case
	Value string // decoded

	start, end int // of the value as it is written, without quotes
}

// pair finds a parameter of an address of the form key=value key='value'. The value is the second
// or third group.
var pair = text.Regexp(`([A-Za-z_][\w.]*)\s*=\s*(?:'((?:[^'\\]|\\.)*)'?|((?:[^\s\\]|\\.)*))`)

// Address returns the secrets that an address of a PostgreSQL database spells out, in their order: of
// one like postgres://user:password@host/database?key=value as well as of key=value pairs. References
// such as {{NAME}} to secrets that are elsewhere are not among them.
func Address(address string) []Part {
	var parts []Part
	add := func(name string, start, end int, decode func(string) string) {
		written := address[start:end]
		if written == "" || strings.HasPrefix(written, "{{") && strings.HasSuffix(written, "}}") && strings.Count(written, "{{") == 1 {
			return
		}
		parts = append(parts, Part{strings.ToLower(name), decode(written), start, end})
	}
	_, rest, ok := strings.Cut(address, "://")
	if !ok || strings.ContainsAny(address[:len(address)-len(rest)], "= ") {
		for _, at := range pair().FindAllStringSubmatchIndex(address, -1) {
			name, start, end := address[at[2]:at[3]], at[4], at[5]
			if start < 0 {
				start, end = at[6], at[7]
			}
			if secretParameter(name) {
				add(name, start, end, stripBackslashes)
			}
		}
		return parts
	}
	begin := len(address) - len(rest)
	question := len(address)
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		question = begin + i
	}
	if at := strings.LastIndexByte(address[begin:question], '@'); at >= 0 {
		if colon := strings.IndexByte(address[begin:begin+at], ':'); colon >= 0 {
			add("password", begin+colon+1, begin+at, lenientDecoder(url.PathUnescape))
		}
	}
	for pos := question + 1; pos < len(address); {
		end := len(address)
		if i := strings.IndexByte(address[pos:], '&'); i >= 0 {
			end = pos + i
		}
		if i := strings.IndexByte(address[pos:end], '='); i >= 0 && secretParameter(lenientDecoder(url.QueryUnescape)(address[pos:pos+i])) {
			add(lenientDecoder(url.QueryUnescape)(address[pos:pos+i]), pos+i+1, end, lenientDecoder(url.QueryUnescape))
		}
		pos = end + 1
	}
	return parts
}

// MaskAddress returns an address with *** in place of each of its secrets, also of the ones that are
// too short for [Secrets.Add]. A mark with a name stays.
func MaskAddress(address string) string {
	for _, p := range slices.Backward(Address(address)) {
		if written := address[p.start:p.end]; marks().FindString(written) != written {
			address = address[:p.start] + "***" + address[p.end:]
		}
	}
	return address
}

// anyAddress finds addresses in a text.
var anyAddress = text.Regexp("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'`<>]+")

// MaskAddresses returns a text with *** in place of the secrets of all addresses in it, see
// [MaskAddress]. Of http and https addresses the name of the user is one too: it is often a token.
func MaskAddresses(text string) string {
	return anyAddress().ReplaceAllStringFunc(text, func(address string) string {
		scheme, rest, _ := strings.Cut(address, "://")
		scheme += "://"
		if s := strings.ToLower(scheme); s != "http://" && s != "https://" {
			return MaskAddress(address)
		}
		end := len(rest)
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			end = i
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			user, password, both := strings.Cut(rest[:at], ":")
			scheme += mask(user)
			if both {
				scheme += ":" + mask(password)
			}
			rest = rest[at:]
		}
		path, query, found := strings.Cut(rest, "?")
		if !found {
			return scheme + rest
		}
		const without = "x://?"
		return scheme + path + "?" + strings.TrimPrefix(MaskAddress(without+query), without)
	})
}

// mask returns *** for a part of an address, unless it is empty, refers to a secret that is elsewhere
// or is masked already.
func mask(part string) string {
	if part == "" || strings.HasPrefix(part, "{{") && strings.HasSuffix(part, "}}") || marks().FindString(part) == part {
		return part
	}
	return "***"
}

// secretParameter reports whether a parameter of an address is, or may hold, a secret.
func secretParameter(name string) bool {
	name = strings.ToLower(name)
	return name == "options" || SecretField(name) && name != "sslkey" && name != "require_auth" // the name of a file, and methods
}

// lenientDecoder returns a function that decodes a text, or returns it as it is if it is malformed.
func lenientDecoder(decode func(string) (string, error)) func(string) string {
	return func(s string) string {
		if d, err := decode(s); err == nil {
			return d
		}
		return s
	}
}

// stripBackslashes returns s without the backslashes that escape a character.
func stripBackslashes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
