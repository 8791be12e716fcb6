package config

import (
	"slices"
	"strings"

	"loki/internal/llm/catalog"
)

// Types of client. Types that this version talks to come first.
const (
	TypeOpenAI           = "openai"
	TypeOpenAICompatible = catalog.CompatibleType
	TypeBuiltin          = catalog.Builtin
	TypeGemini           = "gemini"
	TypeClaude           = "claude"
	TypeCohere           = "cohere"
	TypeAzureOpenAI      = "azure-openai"
	TypeVertexAI         = "vertexai"
	TypeBedrock          = "bedrock"
)

// ClientType is what the configuration has to know of a provider. How one is made is in
// package app.
type ClientType struct {
	Name        string
	APIBase     string   // where its API is; empty if only the provider knows, or if it must be configured
	KeyVariable string   // in which the provider's own programs look for a key; may be empty
	Base        Base     // of the provider's own programs
	Asks        []string // the settings that a first configuration asks for, in order; none for what needs none
	ExampleBase string   // of an api_base that is asked for
}

// Base is how the programs of a provider find its API.
type Base struct {
	Variable string // of the environment, with the address; empty if there is none
	Version  string // path that they append to it, such as "/v1"; empty if the address has it
}

// of returns what api_base is for the value of the variable.
func (b Base) of(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	last := text[strings.LastIndexByte(text, '/')+1:]
	if text == "" || strings.Contains(text, "?") || len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return text
	}
	return text + b.Version
}

// KeyOptional reports whether clients of the type may do without a key.
func (t ClientType) KeyOptional() bool { return t.Name == TypeOpenAICompatible }

// ClientTypes returns the types of client that a configuration may name.
func ClientTypes() []ClientType {
	return []ClientType{
		{Name: TypeOpenAI, APIBase: "https://api.openai.com/v1", Base: Base{Variable: "OPENAI_BASE_URL"}, Asks: []string{"api_key"}},
		{Name: TypeOpenAICompatible, Asks: []string{"api_base", "api_key"}, ExampleBase: "https://example.com/v1"},
		{Name: TypeBuiltin},
		{Name: TypeGemini, KeyVariable: "GOOGLE_API_KEY", Base: Base{"GOOGLE_GEMINI_BASE_URL", "/v1beta"}, Asks: []string{"api_key"}},
		{Name: TypeClaude, KeyVariable: "ANTHROPIC_API_KEY", Base: Base{"ANTHROPIC_BASE_URL", "/v1"}, Asks: []string{"api_key"}},
		{Name: TypeCohere, Base: Base{"CO_API_URL", "/v2"}, Asks: []string{"api_key"}},
		{Name: TypeAzureOpenAI, Base: Base{Variable: "AZURE_OPENAI_ENDPOINT"}, Asks: []string{"api_base", "api_key"}, ExampleBase: "https://RESOURCE.openai.azure.com"},
		{Name: TypeVertexAI, Asks: []string{"project_id", "location"}},
		{Name: TypeBedrock, Asks: []string{"access_key_id", "secret_access_key", "region"}},
	}
}

// clientType returns the type called name, and whether there is one.
func clientType(name string) (ClientType, bool) {
	types := ClientTypes()
	i := slices.IndexFunc(types, func(t ClientType) bool { return t.Name == name })
	if i < 0 {
		return ClientType{}, false
	}
	return types[i], true
}

// BaseWithoutKey returns the environment variable that names the API of a provider whose key is not set, and the variable
// of that key; "" if there is none.
func BaseWithoutKey(get func(name string) string) (base, key string) {
	for _, t := range ClientTypes() {
		key = shellVariable(t.Name + "_api_key")
		if t.Base.Variable != "" && get(t.Base.Variable) != "" && get(key) == "" && (t.KeyVariable == "" || get(t.KeyVariable) == "") {
			return t.Base.Variable, key
		}
	}
	return "", ""
}

// typeNames returns the names of the types of client.
func typeNames() []string {
	var names []string
	for _, t := range ClientTypes() {
		names = append(names, t.Name)
	}
	return names
}
