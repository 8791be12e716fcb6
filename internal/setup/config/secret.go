package config

import (
	"errors"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/llm/provider/wire"
)

// Secrets looks up the secret called name. The error has the code NotFound if there is
// none. It may be called from several goroutines.
type Secrets func(name string) (string, error)

// UseSecrets has the references of c and its clients to secrets looked up by lookup, each
// when its value is used. Without it such values are errors. It is called once after
// [Load], before c is shared.
func (c *Config) UseSecrets(lookup Secrets) {
	c.secrets = lookup
	for _, client := range slices.Concat(c.Clients, c.implied) {
		client.secrets = lookup
	}
}

// Expand returns text, a value of the setting key, with its references to secrets replaced.
// It is for settings that hold whole commands, such as document_loaders; a client expands
// its own settings. The error, with code Config, says where the reference is and what
// to do.
func (c *Config) Expand(key, text string) (string, error) {
	expanded, err := expandValue(text, c.secrets)
	if miss, ok := errors.AsType[*miss](err); ok {
		return "", miss.userError(describe("", placeOf(c.File, c.places, key, miss.name)) + key)
	}
	return expanded, err
}

// HasSecretPlaceholder reports whether text refers to a secret: {{NAME}}, on one line, with
// at least one non-blank character between the braces.
func HasSecretPlaceholder(text string) bool {
	_, ok := nextPlaceholder(text)
	return ok
}

// Expand replaces every {{NAME}} in the text of a file by the secret of that name, as it
// is: quoting is up to the file. Lines whose first character is a # stay as they are.
// Where there is no such secret the reference stays too, and its name is among missing, in
// the order of appearance and once. Any other error of lookup ends it.
func Expand(text string, lookup Secrets) (expanded string, missing []string, err error) {
	if !HasSecretPlaceholder(text) {
		return text, nil, nil
	}
	known := make(map[string]string)
	absent := make(map[string]bool)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
			continue
		}
		for p, ok := nextPlaceholder(line); ok; p, ok = nextPlaceholder(line) {
			secret, found := known[p.name]
			if !found && !absent[p.name] {
				switch secret, err = lookup(p.name); {
				case err == nil:
					known[p.name], found = secret, true
				case fault.CodeOf(err) == fault.NotFound:
					absent[p.name] = true
					missing = append(missing, p.name)
				default:
					return "", nil, err
				}
			}
			if !found {
				secret = line[p.start:p.end]
			}
			b.WriteString(line[:p.start] + secret)
			line = line[p.end:]
		}
		b.WriteString(line)
	}
	return b.String(), missing, nil
}

// placeholder is a reference to a secret within a text.
type placeholder struct {
	start, end int // of the reference, in bytes
	name       string
}

// nextPlaceholder finds the first reference in text. It ends at the first two closing
// braces that leave it a name, so several fit on a line.
func nextPlaceholder(text string) (p placeholder, found bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], "{{")
		if i < 0 {
			return placeholder{}, false
		}
		p.start = from + i
		line, _, _ := strings.Cut(text[p.start+2:], "\n")
		if len(line) > 1 { // a name has a first character, which may be a brace
			if end := strings.Index(line[1:], "}}"); end >= 0 {
				p.end = p.start + 2 + 1 + end + 2
				if p.name = strings.TrimSpace(line[:1+end]); p.name != "" {
					return p, true
				}
			}
		}
		from = p.start + 2
	}
}

// miss says that the secret called name could not be looked up.
type miss struct {
	name string
	err  error
}

func (m *miss) Error() string { return "secret " + m.name + ": " + m.err.Error() }

func (m *miss) Unwrap() error { return m.err }

// errNoVault says why a secret cannot be looked up in a configuration without a vault.
var errNoVault = errors.New("there is no vault to look it up in")

// userError returns the error for the user. source describes what refers to the secret.
func (m *miss) userError(source string) *fault.Error {
	const refers = "%s refers to the secret %q"
	switch {
	case errors.Is(m.err, errNoVault):
		return fault.New(fault.Config, refers+", and %v", source, m.name, errNoVault).WithHint("write the value in place of {{%s}}", m.name)
	case fault.CodeOf(m.err) == fault.NotFound:
		hint := fault.HintOf(m.err)
		if hint == "" {
			hint = "loki --secret add " + m.name
		}
		return fault.New(fault.Config, refers+", which the vault does not have", source, m.name).WithHint("%s", hint)
	}
	return fault.Wrap(fault.CodeOf(m.err), m.err, refers, source, m.name)
}

// expandValue replaces the references in a value, which has no comments. The error
// is a [*miss].
func expandValue(text string, lookup Secrets) (string, error) {
	p, ok := nextPlaceholder(text)
	if !ok {
		return text, nil
	}
	var b strings.Builder
	for ; ok; p, ok = nextPlaceholder(text) {
		if lookup == nil {
			return "", &miss{p.name, errNoVault}
		}
		secret, err := lookup(p.name)
		if err != nil {
			return "", &miss{p.name, err}
		}
		b.WriteString(text[:p.start] + secret)
		text = text[p.end:]
	}
	return b.String() + text, nil
}

// expandPatch returns p with the references replaced.
// The error is a [*miss].
func expandPatch(p *wire.Patch, lookup Secrets) (*wire.Patch, error) {
	if p == nil {
		return nil, nil
	}
	var err error
	expanded := new(wire.Patch)
	if expanded.URL, err = expandValue(p.URL, lookup); err != nil {
		return nil, err
	}
	for _, h := range p.Headers {
		if h.Value != nil {
			text, err := expandValue(*h.Value, lookup)
			if err != nil {
				return nil, err
			}
			h.Value = &text
		}
		expanded.Headers = append(expanded.Headers, h)
	}
	if p.Body != nil {
		body, err := expandJSON(p.Body.Value(), lookup)
		if err != nil {
			return nil, err
		}
		expanded.Body = body.AsObject()
	}
	return expanded, nil
}

func expandJSON(v value.Value, lookup Secrets) (value.Value, error) {
	if s, ok := v.AsString(); ok {
		s, err := expandValue(s, lookup)
		return value.Of(s), err
	}
	if list, ok := v.AsList(); ok {
		var items []value.Value
		for _, item := range list.All() {
			item, err := expandJSON(item, lookup)
			if err != nil {
				return value.Value{}, err
			}
			items = append(items, item)
		}
		return value.ListOf(items...).Value(), nil
	}
	if object := v.AsObject(); object != nil {
		var members []value.Member
		for name, member := range object.All() {
			member, err := expandJSON(member, lookup)
			if err != nil {
				return value.Value{}, err
			}
			members = append(members, value.Member{Name: name, Value: member})
		}
		return value.ObjectOf(members...).Value(), nil
	}
	return v, nil
}
