package config

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

// platformVariable returns the one of LOKI_PROVIDER and LOKI_PLATFORM that counts, and what
// it says; the value is empty if neither is set.
func platformVariable(env Env) (variable, id string) {
	variable = "LOKI_PROVIDER"
	if env.Get(variable) == "" {
		variable = "LOKI_PLATFORM"
	}
	return variable, strings.TrimSpace(env.Get(variable))
}

// fromPlatform makes the client of a user whose file lists none: the variable
// LOKI_PROVIDER, else LOKI_PLATFORM, names a provider and perhaps a model of it. A model that
// the file names and that needs no other client stays. Keys come from the environment as for
// any client.
func (c *Config) fromPlatform(env Env) (warnings []*yamldoc.Problem) {
	variable, id := platformVariable(env)
	name, _, _ := strings.Cut(id, ":")
	if name == "" {
		return nil
	}
	client := knownClient(name)
	if client == nil {
		return []*yamldoc.Problem{{
			Msg:  fmt.Sprintf("%s is ignored: unknown provider %q", variable, name),
			Hint: unknownProviderHint(name),
		}}
	}
	c.Clients = []*Client{client}
	if of, _, _ := strings.Cut(c.Model, ":"); c.Model == "" || of != client.Name && of != TypeBuiltin {
		c.Model, c.modelFrom = id, variable
	}
	return nil
}

// knownClient returns a client of the provider called name, a type of client or a platform,
// that takes all its settings from the environment. It is nil if there is no such provider.
func knownClient(name string) *Client {
	if p, ok := platform(name); ok {
		return newClient(TypeOpenAICompatible, p.Name)
	}
	if _, ok := clientType(name); !ok {
		return nil
	}
	return newClient(name, name)
}

// impliedClients returns the clients that can be named without being configured: one for
// each known provider. The environment has their keys.
func impliedClients() []*Client {
	var clients []*Client
	for _, t := range ClientTypes() {
		if t.Name != TypeOpenAICompatible && t.Name != TypeBuiltin {
			clients = append(clients, knownClient(t.Name))
		}
	}
	for _, p := range platforms {
		clients = append(clients, knownClient(p.Name))
	}
	return clients
}

// fromKeys makes clients of the implied ones whose keys the environment has, in their order.
func (c *Config) fromKeys(env Env) {
	key := fieldOf("api_key")
	c.implied = slices.DeleteFunc(c.implied, func(cl *Client) bool {
		t, _ := clientType(cl.Type)
		p := cl.platform()
		known := slices.Equal(t.Asks, []string{key.name}) || p.APIBase != "" && !p.NoChat && !p.Local && !strings.Contains(p.APIBase, "{")
		if text, _ := cl.raw(env, key); text == "" || !known {
			return false
		}
		c.Clients = append(c.Clients, cl)
		return true
	})
}

// AddServer makes the first client one for a model server that runs on this machine, with the models that it has. Name is that of a
// platform.
func (c *Config) AddServer(name, base string, models []string) {
	client := knownClient(name)
	client.secrets = c.secrets
	client.fields = map[string]*string{"api_base": &base}
	for _, m := range models {
		client.Models = append(client.Models, catalog.Model{Name: m, Type: catalog.Chat})
	}
	same := func(cl *Client) bool { return cl.Name == name }
	c.implied = slices.DeleteFunc(c.implied, same)
	c.Clients = append([]*Client{client}, slices.DeleteFunc(c.Clients, same)...)
}

func unknownProviderHint(name string) string {
	known := typeNames()
	for _, p := range platforms {
		known = append(known, p.Name)
	}
	hint := "the providers are " + strings.Join(known, ", ")
	if near := yamldoc.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near) + hint
	}
	return hint
}
