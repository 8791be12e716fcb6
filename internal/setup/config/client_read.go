package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
	"loki/internal/llm/provider/wire"
)

// readClients reads the entries of clients. One that can never be used is left out
// with a warning.
func (c *Config) readClients(root *yamldoc.Map) {
	for _, n := range root.List("clients") {
		client := readClient(n, filepath.Dir(c.File))
		if client == nil {
			continue
		}
		client.Where = where(c.File, n.Pos())
		client.file, client.places = c.File, placesOf(n)
		if same := c.findClient(client.Name); same != nil {
			p := n.Warnf("a client called %q is already at %s, and this one is never used", client.Name, same.Where)
			p.Hint = "give one of them another name"
			continue
		}
		c.Clients = append(c.Clients, client)
	}
}

func where(file string, pos yamldoc.Pos) string {
	return fmt.Sprintf("%s:%d:%d", file, pos.Line, pos.Column)
}

// readClient reads one entry of clients from a file in dir. It reports why and returns
// nil if the entry is not a client.
func readClient(n *yamldoc.Node, dir string) *Client {
	m := n.Map()
	for _, p := range m.Require("type") {
		p.Hint = "the types are " + strings.Join(typeNames(), ", ")
	}
	c := newClient("", "")
	if !m.Str("type", &c.Type) {
		return nil
	}
	if _, ok := clientType(c.Type); !ok {
		p := m.Get("type").Warnf("unknown type of client %q: the client is left out", c.Type)
		p.Hint = unknownTypeHint(c.Type)
		return nil
	}
	c.Name = c.Type
	m.Str("name", &c.Name)
	for _, f := range clientFields {
		var text string
		if m.Text(f.name, &text) {
			c.fields[f.name] = &text
		}
	}
	if script := c.fields["script"]; script != nil && !filepath.IsAbs(*script) && !HasSecretPlaceholder(*script) {
		*script = filepath.Join(dir, *script)
	}
	for _, n := range m.List("models") {
		c.Models = append(c.Models, catalog.DecodeModel(n))
	}
	m.Strs("fallback_models", &c.Fallbacks)
	c.readPatches(m.Map("patch"))
	c.readOAuth(m.Map("oauth"))
	c.readExtra(m.Map("extra"))
	c.readLimits(m.Map("limits"))
	m.Done()
	return c
}

func (c *Client) readPatches(m *yamldoc.Map) {
	for _, api := range wire.APIs() {
		if rules := decodePatchRules(m.Map(string(api))); len(rules) > 0 {
			if c.Patch == nil {
				c.Patch = make(wire.Patches)
			}
			c.Patch[api] = rules
		}
	}
	m.Done()
}

func (c *Client) readExtra(m *yamldoc.Map) {
	optional(m.Text, "proxy", &c.Extra.Proxy)
	m.Seconds("connect_timeout", &c.Extra.ConnectTimeout)
	m.Seconds("read_timeout", &c.Extra.ReadTimeout)
	m.Uint("retries", &c.Extra.Retries)
	m.Bool("prompt_cache", &c.Extra.PromptCache)
	m.Done()
}

func (c *Client) readLimits(m *yamldoc.Map) {
	m.Bool("learn", &c.Limits.Learn)
	m.Bool("share", &c.Limits.Share)
	m.Uint("concurrency", &c.Limits.Concurrency)
	m.Span("park_after", &c.Limits.ParkAfter)
	m.Uint("requests_per_minute", &c.Limits.RequestsPerMinute)
	m.Uint("tokens_per_minute", &c.Limits.TokensPerMinute)
	m.Done()
}

// unknownTypeHint says what to write instead of a type that does not exist.
func unknownTypeHint(name string) string {
	if p, ok := platform(name); ok {
		return fmt.Sprintf("write type: %s and name: %s", TypeOpenAICompatible, p.Name)
	}
	hint := "the types are " + strings.Join(typeNames(), ", ")
	if near := yamldoc.Nearest(name, typeNames()); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near) + hint
	}
	return hint
}
