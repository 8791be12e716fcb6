package catalog

import (
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// Resolve returns the model of type t that id means:
//
//   - "client:model" is the listed model of that id, hidden ones included. If there is
//     none, it is the one that differs in nothing but the date of its snapshot or, at
//     Bedrock, its region. If there is none either, a model of that name is assumed to
//     exist at the client; those of the builtin client must be listed, except for
//     "script/PATH".
//   - "client" or "client:" is the first model of type t that the client lists.
//   - "model" is the model of that name if exactly one configured client lists it.
//   - The empty id is [Catalog.Default] for chat, and an error for other types.
//
// A model name may itself contain colons. The errors are [*fault.Error]: NotFound
// for an id that means nothing, with the nearest ones as hint, and Config if no
// model is configured at all.
func (c *Catalog) Resolve(id string, t Type) (Model, error) {
	if id == "" {
		if t == Chat {
			return c.Default()
		}
		return Model{}, fault.New(fault.NotFound, "no %s model is named", t).ThatMisses(missing)
	}
	if m, ok, err := c.exact(id, t); ok || err != nil {
		return m, err
	}
	name, model, _ := strings.Cut(id, ":")
	cl := c.client(name)
	switch {
	case cl == nil:
		if m, ok := c.findByName(id, t); ok {
			return m, nil
		}
		return Model{}, c.unknown(id, t)
	case model == "":
		if m, ok := c.first(*cl, t); ok {
			return m, nil
		}
		return Model{}, cl.noneListed(t)
	case cl.Type == Builtin && !(t == Chat && strings.HasPrefix(model, builtinScript)):
		return Model{}, c.notOffered(*cl, model, t)
	}
	if m, ok := cl.similar(model, t); ok {
		return m, nil
	}
	m := Model{Client: cl.Name, ClientType: cl.Type, Name: model, Type: t, SupportsFunctionCalling: cl.Type == Builtin}
	if t == Embedding {
		m.DefaultChunkSize = DefaultChunkSize
	}
	m.Fallbacks = cl.fallbacks(m)
	return m, nil
}

// findByName returns the model with a name, without that of its client, if exactly one configured client lists it.
func (c *Catalog) findByName(name string, t Type) (found Model, ok bool) {
	for _, cl := range c.configuredClients() {
		for _, m := range cl.models() {
			if m.Name == name && m.Type == t {
				if ok {
					return Model{}, false
				}
				found, ok = m, true
			}
		}
	}
	return found, ok
}

// missing is the kind of thing that the errors say does not exist.
const missing = "model"

// builtinScript begins the names of the builtin models that answer from a file.
const builtinScript = "script/"

// NamesFile reports whether the name of the model is that of the file of rules that it answers from.
func (m Model) NamesFile() bool {
	return m.ClientType == Builtin && strings.HasPrefix(m.Name, builtinScript)
}

// exact finds the listed model with precisely this id. A model of another type is
// an error unless one of type t has the same id.
func (c *Catalog) exact(id string, t Type) (m Model, ok bool, err error) {
	for _, cl := range c.clients {
		if name, _, _ := strings.Cut(id, ":"); cl.lazy != nil && cl.Name != name {
			continue // its models need not be read
		}
		for _, m := range cl.models() {
			switch {
			case m.ID() != id:
			case m.Type == t:
				return m, true, nil
			case m.Name != "" && err == nil:
				err = fault.New(fault.NotFound, "%q is not %s but %s", id, t.phrase(), m.Type.phrase()).ThatMisses(missing)
			}
		}
	}
	return Model{}, false, err
}

// Default returns the chat model to use when no model is named: the first that a
// configured client lists. The implied builtin client does not count.
func (c *Catalog) Default() (Model, error) {
	configured := c.configuredClients()
	if len(configured) == 0 {
		return Model{}, nothingConfigured("no model to talk to: nothing is configured")
	}
	for _, cl := range configured {
		if m, ok := c.first(cl, Chat); ok {
			return m, nil
		}
	}
	first := configured[0].Name
	return Model{}, fault.New(fault.Config, "no model chosen, and no configured client lists a chat model").ThatMisses(missing).
		WithHint("name one with -m %s:MODEL, set model: %s:MODEL in config.yaml, or list models: under the client", first, first)
}

// unknown returns the error for an id whose client is not there.
func (c *Catalog) unknown(id string, t Type) error {
	if near := c.nearest(id, t); len(near) > 0 {
		return fault.New(fault.NotFound, "unknown %s model %q", t, id).ThatMisses(missing).
			WithHint("did you mean %s?", text.Or(near))
	}
	configured := c.configuredClients()
	if len(configured) == 0 {
		for _, cl := range c.clients {
			if m, ok := cl.similar(id, t); ok && cl.Type != Builtin {
				return fault.New(fault.NotFound, "unknown %s model %q: no client is configured", t, id).ThatMisses(missing).
					WithHint("did you mean %s? Set its key, as in: export %s_API_KEY=...", m.ID(), strings.ToUpper(strings.ReplaceAll(cl.Name, "-", "_")))
			}
		}
		return nothingConfigured(fmt.Sprintf("unknown %s model %q: no client is configured", t, id))
	}
	names := make([]string, len(configured))
	for i, cl := range configured {
		names[i] = cl.Name
	}
	return fault.New(fault.NotFound, "unknown %s model %q", t, id).ThatMisses(missing).
		WithHint("a model id is client:model, and the configured clients are %s. loki --setup adds others; a key in the environment is enough only while config.yaml lists no clients", strings.Join(names, ", "))
}

func (c Client) noneListed(t Type) error {
	err := fault.New(fault.NotFound, "client %q lists no %s model", c.Name, t).ThatMisses(missing)
	switch {
	case c.Type == Builtin:
		return err.WithHint("list one under models: of another client, with type: %s", t)
	case t == Embedding:
		return err.WithHint("list one under models: of the client, with type: %s", t)
	}
	if c.Implied {
		return err.WithHint("start its server, or name a model as %s:MODEL", c.Name)
	}
	return err.WithHint("name one as %s:MODEL, or list it under models: of the client", c.Name)
}

// notOffered is for a client whose models are all listed.
func (c *Catalog) notOffered(cl Client, model string, t Type) error {
	var ids []string
	for m := range c.visible(cl, t) {
		ids = append(ids, m.ID())
	}
	err := fault.New(fault.NotFound, "client %q has no %s model %q", cl.Name, t, model).ThatMisses(missing)
	if len(ids) == 0 {
		return err
	}
	hint := "it has " + strings.Join(ids, ", ")
	if near := yamldoc.Nearest(cl.Name+":"+model, ids); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return err.WithHint("%s", hint)
}

// nothingConfigured is for a user who has no model at all yet.
func nothingConfigured(msg string) error {
	return fault.New(fault.Config, "%s", msg).ThatMisses(missing).WithHint(`the shortest ways to a model:
  a hosted one:    export OPENAI_API_KEY=...
  a local Ollama:  ollama pull llama3.2
  offline:         loki -m builtin:extract ...
or list your clients in config.yaml`)
}

// phrase is t with its article.
func (t Type) phrase() string {
	switch t {
	case Embedding:
		return "an embedding model"
	case Reranker:
		return "a reranker"
	}
	return "a chat model"
}
