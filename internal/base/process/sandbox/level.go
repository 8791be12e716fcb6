package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"loki/internal/base/value/yamldoc"
)

// Level is how much a child may do. The levels are ordered, each has all that the one before it has. The
// empty level says nothing.
type Level string

// The levels, see the package.
const (
	Read    Level = "read"
	Write   Level = "write"
	Network Level = "network"
	Full    Level = "full"
)

// Levels are the levels, from the least to the most.
func Levels() []Level { return []Level{Read, Write, Network, Full} }

// Valid reports whether l is one of [Levels].
func (l Level) Valid() bool { return slices.Contains(Levels(), l) }

// Covers reports whether l allows all that other allows. The empty level covers itself only, and each covers it.
func (l Level) Covers(other Level) bool {
	return slices.Index(Levels(), l) >= slices.Index(Levels(), other)
}

// Least returns the lower one of two levels. An empty one does not count.
func Least(a, b Level) Level {
	if a == "" || b != "" && a.Covers(b) {
		return b
	}
	return a
}

// Declaration says what a child wants. The zero Declaration says nothing.
type Declaration struct {
	Level Level
	// Hosts are the ones that it reaches at [Network]: example.com, *.example.com for those below it, both with :443 for one
	// port only. Ports 80 and 443 are meant otherwise.
	Hosts []string
	// Read and Write are places beyond those of the level, with all that is in them: absolute paths, such that begin
	// with ~/, and others below the workspace.
	Read, Write []string
}

// ReadDeclaration reads the value of sandbox: of a tool, a node, an agent, a role or an MCP server: a level, or a mapping with
// the keys level, hosts, read and write. Mistakes are reported to the document, and ok is false then: what declares it
// must not run. A nil node, or a null, says nothing.
func ReadDeclaration(n *yamldoc.Node) (d Declaration, ok bool) {
	if n == nil || n.Kind() == yamldoc.Null {
		return Declaration{}, true
	}
	if n.Kind() == yamldoc.String {
		ok = readLevel(n, &d.Level)
		return d, ok
	}
	m := n.Map()
	if m == nil {
		return Declaration{}, false
	}
	ok = m.Require("level") == nil
	for e := range m.All() {
		switch e.Key {
		case "level":
			ok = readLevel(e.Node, &d.Level) && ok
		case "hosts":
			ok = readHosts(e.Node, &d.Hosts) && ok
		case "read":
			ok = readTexts(e.Node, &d.Read) && ok
		case "write":
			ok = readTexts(e.Node, &d.Write) && ok
		default:
			e.Node.KeyErrorf("unknown key %q; there are level, hosts, read and write", e.Key)
			ok = false
		}
	}
	if ok && len(d.Hosts) > 0 && d.Level != Network {
		n.Errorf("hosts need the level network, not %s", d.Level)
		ok = false
	}
	if ok && len(d.Write) > 0 && !d.Level.Covers(Write) {
		n.Errorf("places to write in need the level write or network, not %s", d.Level)
		ok = false
	}
	return d, ok
}

// Settings are the section sandbox: of config.yaml. The zero value is that of a file without it.
type Settings struct {
	Disabled bool // no child is confined
	// Scripts is the level of the user's own scripts that declare none; empty means [Full].
	Scripts Level
	// Read, Write and Hosts are what every child may do beyond its level, as in a [Declaration]: what is in Write from
	// [Write] on, Hosts at [Network].
	Read, Write, Hosts []string
	// Environment are names, with * for any text, of variables that every child gets; see environ.Policy.
	Environment []string
}

// ReadSettings reads the section, which is a mapping with the keys enabled, scripts, read, write, hosts and environment. Mistakes are
// reported as by [ReadDeclaration].
func ReadSettings(n *yamldoc.Node) (s Settings, ok bool) {
	if n == nil || n.Kind() == yamldoc.Null {
		return Settings{}, true
	}
	m := n.Map()
	if m == nil {
		return Settings{}, false
	}
	ok = true
	for e := range m.All() {
		switch e.Key {
		case "enabled":
			enabled, valid := e.Node.Bool()
			s.Disabled, ok = !enabled, ok && valid
		case "scripts":
			ok = readLevel(e.Node, &s.Scripts) && ok
		case "hosts":
			ok = readHosts(e.Node, &s.Hosts) && ok
		case "read":
			ok = readTexts(e.Node, &s.Read) && ok
		case "write":
			ok = readTexts(e.Node, &s.Write) && ok
		case "environment":
			ok = readTexts(e.Node, &s.Environment) && ok
		default:
			e.Node.KeyErrorf("unknown key %q; there are enabled, scripts, read, write, hosts and environment", e.Key)
			ok = false
		}
	}
	return s, ok
}

func readLevel(n *yamldoc.Node, l *Level) bool {
	s, ok := n.Str()
	if !ok {
		return false
	}
	if *l = Level(s); !l.Valid() {
		n.Errorf("%s is not one of read, write, network, full", n.Describe())
		return false
	}
	return true
}

// readTexts reads a list of texts, none of which is empty.
func readTexts(n *yamldoc.Node, list *[]string) bool {
	texts, ok := n.Texts()
	if ok && slices.Contains(texts, "") {
		n.Errorf("must not hold an empty text")
		ok = false
	}
	*list = texts
	return ok
}

// readHosts reads a list of patterns of hosts.
func readHosts(n *yamldoc.Node, list *[]string) bool {
	ok := readTexts(n, list)
	for _, h := range *list {
		if err := CheckHost(h); ok && err != nil {
			n.Errorf("%v", err)
			ok = false
		}
	}
	return ok
}

// CheckHost returns what is wrong with a pattern of hosts, see [Declaration].
func CheckHost(pattern string) error {
	if i := strings.Index(pattern, "://"); i >= 0 {
		name, _, _ := strings.Cut(pattern[i+3:], "/")
		return fmt.Errorf("%q is an address: a host is its name only, such as %s", pattern, cmp.Or(name, "example.com"))
	}
	name, port, found := strings.Cut(pattern, ":")
	if strings.Contains(port, ":") {
		return fmt.Errorf("%q is an address of IPv6, which cannot be a host here: write the name", pattern)
	}
	if n, err := strconv.Atoi(port); found && (err != nil || n < 1 || n > 1<<16-1) {
		return fmt.Errorf("%q has no port behind its colon", pattern)
	}
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}
	if bare := strings.TrimPrefix(name, "*."); bare == "" || strings.ContainsFunc(bare, odd) {
		return fmt.Errorf("%q is not the name of a host, such as example.com or *.example.com", pattern)
	}
	return nil
}
