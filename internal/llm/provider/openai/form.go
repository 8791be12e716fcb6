package openai

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// chatForm is the form of a reply in the words of chat completions.
type chatForm struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

// responseText is the form of a reply in the words of responses.
type responseText struct {
	Format responseForm `json:"format"`
}

type responseForm struct {
	Type string `json:"type"`
	jsonSchema
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

const formType = "json_schema"

// form returns the form of the reply that req asks for, in the words of the server; ok is
// false where the prompt has to do.
func (c *Client) form(req provider.Request, m wire.Model, d dialect) (s jsonSchema, ok bool) {
	if req.Format == nil || d.noForm || !c.takesForm(req, m) {
		return s, false
	}
	shape, ok := normalize.StrictFormat(req.Format)
	return jsonSchema{Name: normalize.FormatName, Strict: true, Schema: shape}, ok
}

// withoutForm begins the names of models of OpenAI that came before structured output.
var withoutForm = []string{"gpt-3.5", "gpt-4-", "o1-mini", "o1-preview", "chatgpt-"}

// Platforms whose documentation describes response_format with a json_schema, by what the
// names of clients begin with and by host. Groq is not among them: there it excludes streams.
var (
	platformsWithForm = []string{"fireworks", "llamacpp", "lmstudio", "mistral", "ollama", "openrouter", "together", "vllm", "xai"}
	hostsWithForm     = []string{"api.fireworks.ai", "api.mistral.ai", "api.together.xyz", "api.x.ai", "openrouter.ai"}
)

// takesForm reports whether the model is known to take the form of a reply.
func (c *Client) takesForm(req provider.Request, m wire.Model) bool {
	begins := func(name string) func(string) bool {
		return func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	}
	if c.kind != kindCompatible {
		return m.RealName != "gpt-4" && !slices.ContainsFunc(withoutForm, begins(m.RealName))
	}
	if len(req.Tools) > 0 { // many servers then force the form upon the calls
		return false
	}
	base, err := url.Parse(c.frame.Base)
	return slices.ContainsFunc(platformsWithForm, begins(c.frame.Name)) || err == nil && slices.Contains(hostsWithForm, base.Hostname())
}
