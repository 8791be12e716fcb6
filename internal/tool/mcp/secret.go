package mcp

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/event/redact"
	"loki/internal/tool/mcp/oauth"
)

// Secrets looks up the secret called name. The error has code fault.NotFound if it does
// not exist. It may be called from several goroutines.
type Secrets func(name string) (string, error)

// resolved is a server with its secrets filled in.
type resolved struct {
	Server
	secrets *redact.Secrets // the ones that it was given
}

// resolve returns s with every reference to a secret or to a variable replaced. The error, which has
// code Config, names the file, the server, the member and what to do.
func (s Server) resolve(o *Options) (resolved, error) {
	lookup := o.Secrets
	r := resolved{Server: s, secrets: new(redact.Secrets)}
	var err error
	in := func(key, text string) string {
		if err != nil {
			return ""
		}
		var expanded string
		expanded, err = r.expand(key, text, lookup, o)
		return expanded
	}
	r.Command = in("command", s.Command)
	r.Args = slices.Clone(s.Args)
	for i, arg := range r.Args {
		r.Args[i] = in("args", arg)
	}
	table := func(key string, all map[string]string) map[string]string {
		all = maps.Clone(all)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			all[name] = in(key+"."+name, all[name])
		}
		return all
	}
	r.Env = table("env", s.Env)
	for name, v := range s.Env {
		if from, ok := passedOn(v); ok {
			if _, set := o.getenv(from); !set {
				delete(r.Env, name)
			}
		}
		if environ.SecretName(name) {
			r.secrets.Add(name, r.Env[name])
		}
	}
	r.Dir = in("cwd", s.Dir)
	r.URL = in("url", s.URL)
	r.Headers = table("headers", s.Headers)
	return r, err
}

// Credentials returns the secrets that the file contains or passes on from the environment:
// values of env with secret names, and those of headers and of the query of addresses that hold
// secrets. It leaves out those of the vault. Each has a name for users.
func (f *File) Credentials(getenv func(name string) (string, bool)) iter.Seq2[string, string] {
	return func(yield func(name, secret string) bool) {
		for _, s := range f.Servers {
			for name, secret := range s.credentials(getenv) {
				if _, _, reference := placeholder(secret); reference == "" && !yield(name, secret) {
					return
				}
			}
		}
	}
}

func (s Server) credentials(getenv func(name string) (string, bool)) map[string]string {
	prefix := strings.ToUpper(strings.ReplaceAll(s.ID, "-", "_")) + "_"
	found := make(map[string]string)
	for name, v := range s.Env {
		if !environ.Secret(name, v) {
			continue
		}
		if from, ok := passedOn(v); ok {
			found[from], _ = getenv(from)
		} else {
			found[prefix+name] = v
		}
	}
	field := func(name, v string) {
		if references := variable().FindAllStringSubmatch(v, -1); len(references) > 0 {
			for _, m := range references {
				if set, ok := getenv(m[1]); ok {
					found[m[1]] = set
				}
			}
			return
		}
		if redact.SecretField(name) {
			found[prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = redact.Credential(v)
		}
	}
	for name, v := range s.Headers {
		field(name, v)
	}
	if u, err := url.Parse(s.URL); err == nil {
		for name, values := range u.Query() {
			field(name, values[0])
		}
	}
	return found
}

// workspaceFolder is the name by which entries refer to the workspace, as in other programs.
const workspaceFolder = "workspaceFolder"

// variable is a reference to a variable of the user's environment, ${NAME}, ${env:NAME} or ${NAME:-otherwise}.
var variable = text.Regexp(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-([^{}]*))?\}`)

// variables returns text with the references to variables replaced. One that is not set and has no other value is an error in
// an address or a header, and stays as it is elsewhere: scripts in arguments have references of their own.
func (r *resolved) variables(key, text string, o *Options) (string, error) {
	var failed error
	remote := key == "url" || strings.HasPrefix(key, "headers.")
	replace := func(ref string) string {
		m := variable().FindStringSubmatch(ref)
		v, ok := o.getenv(m[1])
		switch {
		case ref == "${"+workspaceFolder+"}":
			return cmp.Or(o.Dir, ".")
		case m[2] != "" && v == "":
			return m[3]
		case ok:
			if environ.SecretName(m[1]) || remote && redact.SecretField(strings.TrimPrefix(key, "headers.")) {
				r.secrets.Add(m[1], v)
			}
			return v
		case remote && failed == nil:
			failed = fault.New(fault.Config, "%s: server %q: %s refers to the variable %s, which is not set", r.file, r.ID, key, m[1]).
				WithHint("set it: export %s=..., or keep the value in the vault: loki --secret add %s, and write {{%s}}", m[1], m[1], m[1])
		}
		return ref
	}
	parts := strings.Split(text, "$${") // a literal ${
	for i, part := range parts {
		parts[i] = variable().ReplaceAllStringFunc(part, replace)
	}
	return strings.Join(parts, "${"), failed
}

// passedOn returns the variable of the user's environment that an entry of env passes on:
// the one that it names as ${NAME} or ${env:NAME}.
func passedOn(v string) (name string, ok bool) {
	if m := variable().FindStringSubmatch(v); m != nil && m[0] == v && m[2] == "" && v != "${"+workspaceFolder+"}" {
		return m[1], true
	}
	return "", false
}

func (o *Options) getenv(name string) (string, bool) {
	if o.Getenv == nil {
		return "", false
	}
	return o.Getenv(name)
}

// expand returns text with the references to secrets and, unless o is nil, to variables replaced.
func (r *resolved) expand(key, text string, lookup Secrets, o *Options) (string, error) {
	var b strings.Builder
	for {
		start, end, name := placeholder(text)
		if name == "" {
			start = len(text)
		}
		plain := text[:start]
		if o != nil {
			var err error
			if plain, err = r.variables(key, plain, o); err != nil {
				return "", err
			}
		}
		b.WriteString(plain)
		if name == "" {
			return b.String(), nil
		}
		secret, err := r.look(key, name, lookup)
		if err != nil {
			return "", err
		}
		b.WriteString(secret)
		text = text[end:]
	}
}

func (r *resolved) look(key, name string, lookup Secrets) (string, error) {
	where := fmt.Sprintf("%s: server %q: %s refers to the secret %q", r.file, r.ID, key, name)
	if lookup == nil {
		return "", fault.New(fault.Config, "%s, but no vault is configured", where)
	}
	secret, err := lookup(name)
	switch {
	case err == nil:
	case fault.CodeOf(err) == fault.NotFound:
		hint := cmp.Or(fault.HintOf(err), "loki --secret add "+name)
		return "", fault.New(fault.Config, "%s, which is not in the vault", where).WithHint("%s", hint)
	default:
		return "", fault.Wrap(fault.CodeOf(err), err, "%s", where)
	}
	r.secrets.Add(name, secret)
	return secret, nil
}

// placeholder finds the first reference to a secret, {{NAME}}, in text. Without one name is
// empty.
func placeholder(text string) (start, end int, name string) {
	for from := 0; ; {
		i := strings.Index(text[from:], "{{")
		if i < 0 {
			return 0, 0, ""
		}
		start = from + i
		if inner, _, ok := strings.Cut(text[start+2:], "}}"); ok && !strings.Contains(inner, "\n") {
			if name = strings.TrimSpace(inner); name != "" {
				return start, start + 2 + len(inner) + 2, name
			}
		}
		from = start + 2
	}
}

// redact removes the secrets of the server from a text.
func (r *resolved) redact(text string) string { return r.secrets.Text(text) }

// Login returns the provider in the mapping oauth of a server, with references to secrets
// replaced; nil without such a mapping. The error has code Config.
func (s Server) Login(lookup Secrets) (*oauth.Provider, error) {
	if s.OAuth == nil {
		return nil, nil
	}
	invalid := func(err error) error { return fault.Wrap(fault.Config, err, "%s: server %q: oauth", s.file, s.ID) }
	doc, err := yamldoc.Parse("", s.OAuth, yamldoc.HideSource)
	if err != nil {
		return nil, invalid(err)
	}
	written := oauth.Read(doc.Root().Map())
	if err := doc.Err(); err != nil {
		return nil, invalid(err)
	}
	r := resolved{Server: s, secrets: new(redact.Secrets)}
	p, err := written.Expand(func(_, text string) (string, error) { return r.expand("oauth", text, lookup, nil) })
	if err != nil {
		return nil, err
	}
	return &p, nil
}
