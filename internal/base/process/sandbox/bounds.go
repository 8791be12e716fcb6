package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// Bounds say what a program may do, by where it comes from. The zero Bounds are what it declares, and [Write] if it declares
// nothing.
type Bounds struct {
	// Default is for programs that declare nothing; an empty level means [Write].
	Default Declaration
	// Most is the most that any of them may do; an empty level is not a bound. Its places do not matter.
	Most Declaration
	// Untrusted says that they may do what their level says only: declared places and hosts do not count.
	Untrusted bool
}

// Of returns what a program that declares d runs in.
func (b Bounds) Of(d Declaration) Declaration {
	if d.Level == "" {
		d = b.Default
		d.Level = cmp.Or(d.Level, Write)
	}
	d = d.Within(b.Most)
	if b.Untrusted {
		return Declaration{Level: d.Level}
	}
	return d
}

// Within returns d, lowered to most if that has a level: hosts remain as far as most covers them, and
// places to write in from [Write] on.
func (d Declaration) Within(most Declaration) Declaration {
	if most.Level == "" {
		return d
	}
	full := d.Level == Full
	if d.Level = Least(d.Level, most.Level); d.Level == Network && most.Level == Network {
		if full {
			d.Hosts = most.Hosts
		}
		d.Hosts = slices.DeleteFunc(slices.Clone(d.Hosts), func(host string) bool {
			return !slices.ContainsFunc(most.Hosts, func(pattern string) bool { return coversHost(pattern, host) })
		})
	}
	if d.Level != Network {
		d.Hosts = nil
	}
	if !d.Level.Covers(Write) {
		d.Write = nil
	}
	return d
}

// coversHost reports whether all that a pattern of hosts matches is matched by another one.
func coversHost(pattern, host string) bool {
	name, port, _ := strings.Cut(strings.ToLower(pattern), ":")
	of, at, _ := strings.Cut(strings.ToLower(host), ":")
	below, wild := strings.CutPrefix(name, "*")
	return (name == of || wild && strings.HasSuffix(strings.TrimPrefix(of, "*"), below)) && (port == at || port == "" && (at == "80" || at == "443"))
}

// ParseDeclaration reads the words behind @sandbox in a comment: a level, and at [Network] hosts.
func ParseDeclaration(words []string) (Declaration, error) {
	if len(words) == 0 || !Level(words[0]).Valid() {
		return Declaration{}, fmt.Errorf("@sandbox needs one of read, write, network, full, found %q", strings.Join(words, " "))
	}
	d := Declaration{Level: Level(words[0]), Hosts: slices.Concat(words[1:])}
	if len(d.Hosts) > 0 && d.Level != Network {
		return Declaration{}, fmt.Errorf("@sandbox %s takes nothing more; hosts need @sandbox network", d.Level)
	}
	for _, h := range d.Hosts {
		if err := CheckHost(h); err != nil {
			return Declaration{}, fmt.Errorf("@sandbox: %w", err)
		}
	}
	return d, nil
}

// String returns d on one line: the level, and what is beyond it, such as "network (example.com)".
func (d Declaration) String() string {
	var more []string
	more = append(more, d.Hosts...)
	for _, p := range d.Read {
		more = append(more, "reads "+p)
	}
	for _, p := range d.Write {
		more = append(more, "writes "+p)
	}
	if len(more) == 0 {
		return string(d.Level)
	}
	return fmt.Sprintf("%s (%s)", d.Level, strings.Join(more, ", "))
}

// LeastWith returns the least declaration with what was stopped in a child that has d; ok is false if that
// is nothing, or if no level has it. What a rule denies or asks about has no level.
func (d Declaration) LeastWith(stopped []Refusal) (needed Declaration, ok bool) {
	needed = Declaration{Level: d.Level, Hosts: slices.Clone(d.Hosts), Read: d.Read, Write: d.Write}
	for _, r := range stopped {
		if r.byRule() {
			continue
		}
		if least := cmp.Or(r.Level, Full); least.Covers(needed.Level) {
			needed.Level = least
		}
		host := strings.TrimSuffix(strings.TrimSuffix(r.What, ":443"), ":80")
		if r.Access == Connecting && host != "" && CheckHost(host) == nil && !slices.Contains(needed.Hosts, host) {
			needed.Hosts = append(needed.Hosts, host)
		}
	}
	if needed.Level != Network {
		needed.Hosts = nil
	}
	return needed, needed.Level != d.Level || len(needed.Hosts) > len(d.Hosts)
}

// maxNoted is how many refusals [Refusals] names.
const maxNoted = 16

// Refusals returns what was stopped as predicates of one subject, such as "writes go.sum, reads ~/.ssh/id (it has keys)", and how
// many more there are if they are too many.
func Refusals(stopped []Refusal) string {
	texts := make([]string, 0, len(stopped))
	for _, r := range stopped {
		text := r.String()
		if r.Reason != "" {
			text += " (" + r.Reason + ")"
		}
		texts = append(texts, text)
	}
	return some(texts, ", ")
}

// some joins texts, of which it leaves out those after the first [maxNoted].
func some(texts []string, separator string) string {
	more := ""
	if left := len(texts) - maxNoted; left > 0 {
		texts, more = texts[:maxNoted], fmt.Sprintf(" and %d more", left)
	}
	return strings.Join(texts, separator) + more
}

// Note explains a failed child of which d.Level stopped something: what that was, and how to declare what it needs, which
// remedy says. It is empty if nothing was stopped, and begins in lower case otherwise.
func (d Declaration) Note(stopped []Refusal, remedy func(needed Declaration) string) string {
	stopped, noticed := Apart(stopped)
	var notes []string
	if len(stopped) > 0 {
		notes = append(notes, fmt.Sprintf("the sandbox stopped it at level %s: it %s", d.Level, Refusals(stopped)))
	}
	if needed, ok := d.LeastWith(stopped); ok {
		notes = append(notes, remedy(needed))
	}
	if len(noticed) > 0 {
		notes = append(notes, "it "+Refusals(noticed))
	}
	return strings.Join(notes, "; ")
}

// Value returns d as files have it: null for nothing, a text if it is only a level, and otherwise a mapping.
func (d Declaration) Value() value.Value {
	if d.Level == "" {
		return value.Value{}
	}
	members := []value.Member{{Name: "level", Value: value.Of(string(d.Level))}}
	for _, list := range []struct {
		name  string
		items []string
	}{{"hosts", d.Hosts}, {"read", d.Read}, {"write", d.Write}} {
		var items []value.Value
		for _, text := range list.items {
			items = append(items, value.Of(text))
		}
		if items != nil {
			members = append(members, value.Member{Name: list.name, Value: value.ListOf(items...).Value()})
		}
	}
	if len(members) == 1 {
		return members[0].Value
	}
	return value.ObjectOf(members...).Value()
}

// Comment returns d as a comment of a script declares it, without the mark of the comment.
func (d Declaration) Comment() string {
	return strings.Join(append([]string{"@sandbox", string(d.Level)}, d.Hosts...), " ")
}

// YAML returns d as a value of sandbox: in one line.
func (d Declaration) YAML() string {
	if len(d.Hosts) == 0 {
		return string(d.Level)
	}
	hosts := make([]string, len(d.Hosts))
	for i, h := range d.Hosts {
		hosts[i] = h
		if strings.ContainsAny(h, "*:") {
			hosts[i] = `"` + h + `"`
		}
	}
	return fmt.Sprintf("{level: %s, hosts: [%s]}", d.Level, strings.Join(hosts, ", "))
}

// NeedsFull is what the note of a failed script says that starts this program, which needs its configuration and
// its own files.
const NeedsFull = "a script that starts loki needs the level full"

// StartsProgram reports whether the text of a script seems to start this program.
func StartsProgram(src []byte) bool {
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") && !strings.Contains(line, "--argc-") && startsProgram().MatchString(line) {
			return true
		}
	}
	return false
}

var startsProgram = text.Regexp("LOKI_EXECUTABLE|(?:^|[(`;|&{=]|do |then |else |if |! )\\s*(?:[\\w.~/-]*/)?loki\\s+|[\"'](?:[\\w.~/-]*/)?loki[\"']\\s*,")
