package catalog

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Builtin is the name, and the type, of the client whose models are part of the
// program. A configured client of that name takes its place.
const Builtin = "builtin"

// CompatibleType is the type of the clients that speak the OpenAI protocol to a
// server that is not OpenAI's.
const CompatibleType = "openai-compatible"

// Client is a configured connection and the models it lists.
type Client struct {
	Name   string
	Type   string
	Models []Model // in order; Client, ClientType and Listed are filled in by New

	// Fallbacks are those of the models that name none themselves. A model is never
	// its own fallback.
	Fallbacks []string

	// Implied clients were not configured. Their models can be named, but no list shows
	// them, and none is the default.
	Implied bool

	lazy func() []Model // of an implied client, whose models are read when it is named
}

// models returns the models of c, loading them if need be.
func (c Client) models() []Model {
	if c.lazy != nil {
		return c.lazy()
	}
	return c.Models
}

// Provider is a list of known models for the clients that list none themselves.
type Provider struct {
	Name string // a client type, or the beginning of an openai-compatible client's name

	// Models returns the list, which the caller must not change. It is called only if a client
	// needs it.
	Models func() []Model
}

// Catalog holds clients and their models. It is immutable and may be used from
// several goroutines.
type Catalog struct {
	clients []Client // the builtin client, if it is not configured, is last
	known   []Provider

	today string // see [Catalog.On]; empty for no day
}

// New returns the catalog of clients. A client that lists no models has those of
// the first known provider of its type or, if it is openai-compatible, of the first
// whose name its own name begins with.
func New(clients []Client, known []Provider) *Catalog {
	c := &Catalog{clients: slices.Clone(clients)}
	if c.client(Builtin) == nil {
		c.clients = append(c.clients, Client{Name: Builtin, Type: Builtin, Implied: true})
	}
	known = append(slices.Clip(known), Provider{Name: Builtin, Models: builtinModels})
	c.known = known
	for i, cl := range c.clients {
		if cl.Implied && cl.Type != Builtin {
			c.clients[i].lazy = sync.OnceValue(func() []Model { return cl.complete(known) })
			continue
		}
		c.clients[i].Models = cl.complete(known)
	}
	return c
}

// builtinModels returns the models of the builtin client. What each does is
// described by the provider that implements them.
func builtinModels() []Model {
	var models []Model
	for _, name := range []string{"extract", "echo", "script"} {
		models = append(models, Model{Name: name, Type: Chat, SupportsFunctionCalling: true})
	}
	return append(models, Model{Name: "hash", Type: Embedding, InputPrice: new(0.0), DefaultChunkSize: 2000, MaxBatchSize: 256})
}

// complete returns the models of c, filled in.
func (c Client) complete(known []Provider) []Model {
	models := c.Models
	if len(models) == 0 {
		i := slices.IndexFunc(known, c.isOf)
		if i < 0 {
			return nil
		}
		models = known[i].Models()
	}
	models = slices.Clone(models)
	for i := range models {
		m := &models[i]
		m.Client, m.ClientType, m.Listed = c.Name, c.Type, true
		m.Fallbacks = c.fallbacks(*m)
		m.Type = cmp.Or(m.Type, Chat)
		if m.Type == Embedding {
			m.DefaultChunkSize = cmp.Or(m.DefaultChunkSize, DefaultChunkSize)
		}
	}
	return models
}

// OutputLimit returns the longest reply that m can write, in tokens, 0 if that is unknown. For
// a model that a client lists without saying so, it is that of the known model of the
// same name.
func (c *Catalog) OutputLimit(m Model) int {
	cl := c.client(m.Client)
	if m.MaxOutputTokens > 0 || cl == nil {
		return m.MaxOutputTokens
	}
	i := slices.IndexFunc(c.known, cl.isOf)
	if i < 0 {
		return 0
	}
	known := Client{Name: cl.Name, Type: cl.Type}.complete(c.known[i : i+1])
	for _, k := range known {
		if k.Type == m.Type && (k.Name == m.APIName() || k.APIName() == m.APIName()) {
			return k.MaxOutputTokens
		}
	}
	cl = &Client{Name: cl.Name, Type: cl.Type, Models: known}
	like, _ := cl.similar(m.APIName(), m.Type) // 0 if there is none
	return like.MaxOutputTokens
}

func (c Client) isOf(p Provider) bool {
	if c.Type == CompatibleType {
		return p.Name != Builtin && strings.HasPrefix(c.Name, p.Name)
	}
	return c.Type == p.Name
}

// client returns the client called name, nil if there is none. Of clients with the
// same name the first counts.
func (c *Catalog) client(name string) *Client {
	i := slices.IndexFunc(c.clients, func(cl Client) bool { return cl.Name == name })
	if i < 0 {
		return nil
	}
	return &c.clients[i]
}

// configuredClients returns the clients that the configuration lists.
func (c *Catalog) configuredClients() []Client {
	return slices.DeleteFunc(slices.Clone(c.clients), func(cl Client) bool { return cl.Implied })
}

// Models ranges over the listed models of type t, but for hidden ones: clients in the order of the
// configuration, builtin last unless it is configured, and models as their client
// lists them.
func (c *Catalog) Models(t Type) iter.Seq[Model] {
	return func(yield func(Model) bool) {
		for _, cl := range c.clients {
			if cl.Implied && cl.Type != Builtin {
				continue
			}
			for m := range c.visible(cl, t) {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// IDs returns the ids of [Catalog.Models].
func (c *Catalog) IDs(t Type) []string {
	var ids []string
	for m := range c.Models(t) {
		ids = append(ids, m.ID())
	}
	return ids
}

// ListIDs returns the ids of a type, those of the program first.
func (c *Catalog) ListIDs(t Type) []string {
	ids := c.IDs(t)
	own := func(id string) bool { return strings.HasPrefix(id, Builtin+":") }
	others := slices.DeleteFunc(slices.Clone(ids), own)
	return append(slices.DeleteFunc(ids, func(id string) bool { return !own(id) }), others...)
}

// visible ranges over the models of type t that cl lists and that are not hidden.
func (c *Catalog) visible(cl Client, t Type) iter.Seq[Model] {
	return func(yield func(Model) bool) {
		for _, m := range cl.models() {
			if m.Type == t && !c.isHidden(m) && !yield(m) {
				return
			}
		}
	}
}

// first returns the first model of type t that cl lists.
func (c *Catalog) first(cl Client, t Type) (Model, bool) {
	for m := range c.visible(cl, t) {
		return m, true
	}
	return Model{}, false
}
