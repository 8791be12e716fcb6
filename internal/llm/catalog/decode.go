package catalog

import (
	"slices"
	"strings"
	"time"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/wire"
)

// DecodeModel reads one entry of a list of models. What is wrong with it is
// reported to the node's document.
func DecodeModel(n *yamldoc.Node) Model {
	m := n.Map()
	var model Model
	m.Require("name")
	m.Text("name", &model.Name)
	m.Text("real_name", &model.RealName)
	model.Type = decodeType(m)

	m.Uint("max_input_tokens", &model.MaxInputTokens)
	model.InputPrice = decodePrice(m, "input_price")
	model.OutputPrice = decodePrice(m, "output_price")
	model.CachedInputPrice = decodePrice(m, "cached_input_price")
	model.CacheWritePrice = decodePrice(m, "cache_write_price")
	m.Strs("fallback_models", &model.Fallbacks)
	m.Bool("hidden", &model.Hidden)
	model.Retired = decodeDay(m, "retired")
	m.Text("replaced_by", &model.ReplacedBy)
	if patch := m.Get("patch"); patch != nil && patch.Kind() != yamldoc.Null {
		model.Patch = wire.ReadPatch(patch)
	}

	m.Uint("max_output_tokens", &model.MaxOutputTokens)
	m.Bool("require_max_tokens", &model.RequireMaxTokens)
	m.Bool("supports_vision", &model.SupportsVision)
	m.Bool("supports_function_calling", &model.SupportsFunctionCalling)
	m.Bool("supports_reasoning", &model.SupportsReasoning)
	model.ReasoningLevels = decodeLevels(m)
	decodeAPI(m, "api", &model.API)
	decodeAPI(m, "tools_api", &model.ToolsAPI)
	m.Bool("no_stream", &model.NoStream)
	m.Bool("no_system_message", &model.NoSystemMessage)
	m.Str("system_prompt_prefix", &model.SystemPromptPrefix)

	m.Uint("max_tokens_per_chunk", &model.MaxTokensPerChunk)
	m.Uint("default_chunk_size", &model.DefaultChunkSize)
	m.Uint("max_batch_size", &model.MaxBatchSize)
	m.Foreign("default_reasoning_effort", "default_reasoning_level")
	m.Done()
	return model
}

// decodeType reads the type of a model. An unknown type means a chat model, as it always
// did, and is probably a mistake.
func decodeType(m *yamldoc.Map) Type {
	name := string(Chat)
	if !m.Str("type", &name) {
		return Chat
	}
	t := ParseType(name)
	if t == Chat && name != string(Chat) {
		p := m.Get("type").Warnf("unknown type of model %q is taken for %s", name, Chat)
		p.Hint = "the types are chat, embedding and reranker"
	}
	return t
}

// decodeDay reads a day such as 2026-10-23.
func decodeDay(m *yamldoc.Map, key string) string {
	var day string
	if !m.Text(key, &day) {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		m.Get(key).Errorf("want a day such as 2026-10-23, not %q", day)
	}
	return day
}

// Levels returns the efforts of reasoning that a model may list, in ascending order.
func Levels() []string {
	var names []string
	for _, e := range chat.Efforts() {
		names = append(names, string(e))
	}
	return names
}

// decodeLevels reads reasoning_levels. Unknown levels are left out with a
// warning, and the result is in ascending order.
func decodeLevels(m *yamldoc.Map) []string {
	levels := Levels()
	var listed []string
	if !m.Strs("reasoning_levels", &listed) {
		return nil
	}
	for _, name := range listed {
		if !slices.Contains(levels, name) {
			p := m.Get("reasoning_levels").Warnf("unknown level %q is ignored", name)
			p.Hint = "the levels are " + strings.Join(levels, ", ")
		}
	}
	return slices.DeleteFunc(levels, func(l string) bool { return !slices.Contains(listed, l) })
}

func decodeAPI(m *yamldoc.Map, key string, dst *string) {
	if m.Str(key, dst) && *dst != ChatCompletionsAPI && *dst != ResponsesAPI {
		m.Get(key).Errorf("%q is neither %s nor %s", *dst, ChatCompletionsAPI, ResponsesAPI)
	}
}

func decodePrice(m *yamldoc.Map, key string) *float64 {
	var price float64
	if !m.Float(key, &price) {
		return nil
	}
	if price < 0 {
		m.Get(key).Errorf("a price must not be negative")
	}
	return &price
}
