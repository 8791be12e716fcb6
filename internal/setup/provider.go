package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"loki/internal/base/ask"
	"loki/internal/llm/catalog"
	"loki/internal/llm/provider/local"
	"loki/internal/setup/config"
	"loki/internal/tool/mcp/oauth"
)

// provider is what can be chosen.
type provider struct {
	label  string // as it is offered
	typ    string // of the client
	name   string // of the client
	fields []field
	server *local.Server // that runs here; nil for others
	base   string        // of the OpenAI format, where it is known
}

// field is a setting of a client that is asked for.
type field struct {
	name     string
	text     string
	secret   bool
	optional bool
	check    func(string) error // what is wrong with an answer; nil accepts any
}

// checkSecret returns what is wrong with a key.
func checkSecret(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return errors.New("a key has neither blanks nor line ends in it")
	}
	return nil
}

// checkURL returns what is wrong with the address of a server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("it must begin with http:// or https://")
	case u.Host == "":
		return errors.New("it names no server")
	}
	return nil
}

var optionalKey = field{name: "api_key", text: "API key (empty for none)", secret: true, optional: true}

// fieldsOf returns the settings that a client of a type needs.
func fieldsOf(t config.ClientType) []field {
	fields := make([]field, len(t.Asks))
	for i, name := range t.Asks {
		fields[i] = map[string]field{
			"api_key":           {text: "API key", secret: true},
			"api_base":          {text: "API base, such as " + t.ExampleBase, check: checkURL},
			"project_id":        {text: "Project id"},
			"location":          {text: "Location, such as us-central1"},
			"access_key_id":     {text: "Access key id", secret: true},
			"secret_access_key": {text: "Secret access key", secret: true},
			"region":            {text: "Region, such as us-east-1"},
		}[name]
		fields[i].name = name
		if name == optionalKey.name && t.KeyOptional() {
			fields[i] = optionalKey
		}
	}
	return fields
}

// kindNames are how the programs call themselves.
var kindNames = map[local.Kind]string{local.Ollama: "Ollama", local.LlamaCPP: "llama.cpp", local.LMStudio: "LM Studio", local.VLLM: "vLLM"}

// providers lists what is offered: what runs here, then the types, then the platforms.
func providers(servers []local.Server) []provider {
	var list []provider
	for _, s := range servers {
		list = append(list, provider{
			label: fmt.Sprintf("%s, local: runs on this machine", kindNames[s.Kind]),
			typ:   config.TypeOpenAICompatible, name: string(s.Kind), server: &s, base: s.BaseURL,
		})
	}
	for _, t := range config.ClientTypes() {
		if len(t.Asks) > 0 {
			list = append(list, provider{label: t.Name, typ: t.Name, name: t.Name, fields: fieldsOf(t)})
		}
	}
	for _, p := range config.Platforms() {
		if slices.ContainsFunc(servers, func(s local.Server) bool { return string(s.Kind) == p.Name }) {
			continue
		}
		offered := provider{label: p.Name, typ: config.TypeOpenAICompatible, name: p.Name, base: p.APIBase}
		if strings.Contains(p.APIBase, "{") {
			offered.fields = append(offered.fields, field{name: "api_base", text: "API base, as in " + p.APIBase, check: checkURL})
		}
		if p.Local {
			offered.label += " (local)"
		} else {
			offered.fields = append(offered.fields, optionalKey)
		}
		list = append(list, offered)
	}
	return list
}

func (w *wizard) chooseProvider(ctx context.Context) (provider, error) {
	list := slices.DeleteFunc(providers(w.Servers), func(p provider) bool {
		return slices.Contains(w.taken, p.name) && (p.typ != p.name || p.typ != config.TypeOpenAICompatible)
	})
	labels := make([]string, len(list))
	for i, p := range list {
		labels[i] = p.label
	}
	answer, err := w.selectOne(ctx, "provider", "Which provider do you use? (At a later question, type back to choose another provider.)", labels)
	if err != nil {
		return provider{}, err
	}
	i := slices.Index(labels, answer)
	if i < 0 {
		return provider{}, fmt.Errorf("there is no provider %q", answer)
	}
	return list[i], nil
}

// askFields asks for what p needs and begins the draft with it.
func (w *wizard) askFields(ctx context.Context, p provider, d *draft) error {
	d.typ, d.name = p.typ, p.name
	if p.typ == config.TypeOpenAICompatible && p.name == p.typ {
		name, err := w.checkedLine(ctx, ask.Line, "name", "Name of the provider", true, func(answer string) error {
			switch name := clientName(answer); {
			case strings.ContainsFunc(name, func(r rune) bool { return r == ':' || unicode.IsControl(r) }):
				return errors.New("a name has no colon and no control characters")
			case name == catalog.Builtin:
				return errors.New("that is the name of the models that are part of the program")
			case slices.Contains(w.taken, name):
				return errors.New("there is a provider of that name already")
			}
			return nil
		})
		if err != nil {
			return err
		}
		d.name = clientName(name)
	}
	d.known = map[string]string{"api_base": p.base}
	if p.server != nil && !usualPlace(*p.server) {
		d.settings = append(d.settings, setting{name: "api_base", value: p.base})
	}
	fields, err := w.chooseLogin(ctx, p, d)
	if err != nil {
		return err
	}
	for _, f := range fields {
		ask := w.askPlain
		if f.secret {
			ask = w.askSecret
		}
		if err := ask(ctx, d, f); err != nil {
			return err
		}
	}
	return nil
}

// clientName returns the name of a client that the user has typed.
func clientName(text string) string { return strings.Join(strings.Fields(text), "-") }

const withKey, withOAuth = "API key", "OAuth"

// chooseLogin returns what p needs with the kind of login that the user has, where there
// are two.
func (w *wizard) chooseLogin(ctx context.Context, p provider, d *draft) ([]field, error) {
	if _, ok := oauth.Defaults(p.typ); !ok {
		return p.fields, nil
	}
	answer, err := w.selectOne(ctx, "auth", "How do you log in?", []string{withKey, withOAuth, back})
	if err != nil || answer != withOAuth {
		return p.fields, err
	}
	d.settings = append(d.settings, setting{name: "auth", value: "oauth"})
	w.note("Log in, when all is set up, with: loki --authenticate " + p.name)
	return []field{
		{name: "oauth.client_id", text: "Client id that you have registered there"},
		{name: "oauth.client_secret", text: "Client secret (empty for none)", secret: true, optional: true},
	}, nil
}

// usualPlace reports whether a server is where its platform is looked for anyway.
func usualPlace(s local.Server) bool {
	port := func(url string) string { return url[strings.LastIndex(url, ":")+1:] }
	for _, p := range config.Platforms() {
		if p.Name == string(s.Kind) {
			return strings.HasPrefix(s.BaseURL, "http://127.0.0.1:") && port(s.BaseURL) == port(p.APIBase)
		}
	}
	return false
}

// askPlain asks for a setting that is not secret. A variable that is set may replace it.
func (w *wizard) askPlain(ctx context.Context, d *draft, f field) error {
	text := f.text
	variable, inEnv := w.variable(d.name, f.name)
	if inEnv {
		text += " (empty for what " + variable + " says)"
	}
	value, err := w.checkedLine(ctx, ask.Line, f.name, text, !inEnv && !f.optional, f.check)
	if err != nil {
		return err
	}
	d.known[f.name] = cmp.Or(w.getenv(variable), value)
	if value != "" {
		d.settings = append(d.settings, setting{name: f.name, value: value})
	}
	return nil
}

// askSecret asks for a setting that goes to the vault, unless a variable holds it or it
// is in the vault already.
func (w *wizard) askSecret(ctx context.Context, d *draft, f field) error {
	if variable, inEnv := w.variable(d.name, f.name); inEnv {
		w.note(variable + " is set, and is what will be used.")
		d.known[f.name] = w.getenv(variable)
		return nil
	}
	s := secret{name: secretName(d.name, f.name)}
	stored, err := w.Vault.List(ctx)
	if err != nil {
		return err
	}
	if s.replaces = slices.Contains(stored, s.name); s.replaces {
		keep, err := w.confirm(ctx, "stored", "The vault has a secret "+s.name+" already. Use it?")
		if err != nil {
			return err
		}
		if keep {
			d.refer(f.name, s.name)
			if f.name == "api_key" {
				d.known[f.name], err = w.Vault.Get(ctx, s.name)
			}
			return err
		}
	}
	if s.text, err = w.checkedLine(ctx, ask.Secret, f.name, f.text, !f.optional, checkSecret); err != nil || s.text == "" {
		return err
	}
	d.known[f.name] = s.text
	d.secrets = append(d.secrets, s)
	d.refer(f.name, s.name)
	return nil
}

// secretName returns the name of a client's setting in the vault.
func secretName(client, setting string) string {
	return strings.ToUpper(client + "_" + strings.ReplaceAll(setting, ".", "_"))
}

// variable returns the environment variable of a client's setting, and whether it is set.
func (w *wizard) variable(client, setting string) (name string, set bool) {
	names := config.Variables(secretName(client, setting))
	for _, name := range names {
		if w.getenv(name) != "" {
			return name, true
		}
	}
	return names[len(names)-1], false
}
