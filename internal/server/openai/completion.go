package openai

import (
	"encoding/json"
	"slices"

	"loki/internal/chat"
)

// completionRequest is the body of a request for a chat completion. A member of type
// json.RawMessage has several forms, or none that changes anything here.
type completionRequest struct {
	Model    string          `json:"model"`
	Messages json.RawMessage `json:"messages"`
	sampling
	ReasoningEffort     string          `json:"reasoning_effort"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                json.RawMessage `json:"stop"`
	Seed                *int64          `json:"seed"`
	FrequencyPenalty    float64         `json:"frequency_penalty"`
	PresencePenalty     float64         `json:"presence_penalty"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	Stream              *bool           `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options"`
	Loki                json.RawMessage `json:"loki"`

	// What can only be had as it is anyway.
	N                json.RawMessage `json:"n"`
	Logprobs         json.RawMessage `json:"logprobs"`
	TopLogprobs      json.RawMessage `json:"top_logprobs"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	Modalities       json.RawMessage `json:"modalities"`
	Audio            json.RawMessage `json:"audio"`
	WebSearchOptions json.RawMessage `json:"web_search_options"`
	Verbosity        json.RawMessage `json:"verbosity"`
	Functions        json.RawMessage `json:"functions"`
	FunctionCall     json.RawMessage `json:"function_call"`

	bookkeeping
}

// bookkeeping are members that concern the service of OpenAI and change no answer here.
type bookkeeping struct {
	User                 json.RawMessage `json:"user"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	Metadata             json.RawMessage `json:"metadata"`
	Store                *bool           `json:"store"`
	ServiceTier          json.RawMessage `json:"service_tier"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	Prediction           json.RawMessage `json:"prediction"`
}

// refuse returns the error of members that ask for what cannot be had.
func (c *completionRequest) refuse() error {
	return refuse([]fixed{
		{"n", c.N, []string{"1"}, "more than one answer"},
		{"logprobs", c.Logprobs, []string{"false"}, "probabilities"},
		{"top_logprobs", c.TopLogprobs, []string{"0"}, "probabilities"},
		{"logit_bias", c.LogitBias, []string{"{}"}, "a bias"},
		{"modalities", c.Modalities, []string{`["text"]`}, "anything but text"},
		{"audio", c.Audio, nil, "audio"},
		{"web_search_options", c.WebSearchOptions, nil, "web search of a provider"},
		{"verbosity", c.Verbosity, []string{`"medium"`}, "another verbosity"},
		{"functions", c.Functions, nil, "the form before tools"},
		{"function_call", c.FunctionCall, nil, "the form before tool_choice"},
	})
}

// fixed is a member of a request that says how things are anyway, or asks for what cannot be had.
type fixed struct {
	name   string
	value  json.RawMessage
	usual  []string // what is had without asking, as compact JSON
	reason string   // what cannot be had
}

func refuse(members []fixed) error {
	for _, m := range members {
		if !absent(m.value) && !slices.Contains(m.usual, compact(m.value)) {
			return unsupported(m.name, m.reason)
		}
	}
	return nil
}

// parseCompletion reads the body of a request for a chat completion.
func parseCompletion(body []byte) (*request, error) {
	var c completionRequest
	if err := decode(body, "", &c); err != nil {
		return nil, err
	}
	r := &request{Model: c.Model, Constraints: chat.Constraints{Seed: c.Seed, FrequencyPenalty: c.FrequencyPenalty, PresencePenalty: c.PresencePenalty}, Stream: c.Stream != nil && *c.Stream}
	r.Temperature, r.TopP = c.Temperature, c.TopP
	r.OneCall = c.ParallelToolCalls != nil && !*c.ParallelToolCalls
	for _, step := range []func() error{
		func() error { return needs("model", c.Model != "") },
		func() error { return needs("messages", !absent(c.Messages)) },
		c.refuse,
		c.check,
		func() error { return penalty("frequency_penalty", c.FrequencyPenalty) },
		func() error { return penalty("presence_penalty", c.PresencePenalty) },
		func() error { return r.effort(c.ReasoningEffort, "reasoning_effort") },
		func() error { return r.limit(c.MaxTokens, "max_tokens") },
		func() error { return r.limit(c.MaxCompletionTokens, "max_completion_tokens") },
		func() (err error) { r.Stop, err = stops(c.Stop); return err },
		func() error { return c.readTools(r) },
		func() error { return c.readChoice(r) },
		func() error { return c.readFormat(r) },
		func() error { return c.readStreamOptions(r) },
		func() error { return readLoki(c.Loki, r) },
		func() error { return readMessages(c.Messages, r) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func penalty(name string, value float64) error {
	if value < -2 || value > 2 {
		return invalid(name, "%s has to be between -2 and 2", name)
	}
	return nil
}

func needs(name string, there bool) error {
	if !there {
		return invalid(name, "%s is missing", name)
	}
	return nil
}

// maxStops is how many texts may end an answer.
const maxStops = 16

// stops reads the texts that end an answer: one, or a list.
func stops(m json.RawMessage) ([]string, error) {
	if absent(m) {
		return nil, nil
	}
	texts := []string{""}
	if text, ok := isString(m); ok {
		texts[0] = text
	} else if json.Unmarshal(m, &texts) != nil {
		return nil, invalid("stop", "stop has to be a text or a list of texts")
	}
	if len(texts) > maxStops || slices.Contains(texts, "") {
		return nil, invalid("stop", "stop may have up to %d texts, none of them empty", maxStops)
	}
	return texts, nil
}

func (c *completionRequest) readTools(r *request) error {
	if absent(c.Tools) {
		return nil
	}
	elements, err := list(c.Tools, "tools")
	if err != nil {
		return err
	}
	for i, e := range elements {
		at := element("tools", i)
		var t struct {
			Type     string          `json:"type"`
			Function json.RawMessage `json:"function"`
			Custom   json.RawMessage `json:"custom"`
		}
		if err := decode(e, at, &t); err != nil {
			return err
		}
		if t.Type != "function" {
			return unsupported(member(at, "type"), "a tool of type "+t.Type)
		}
		var f struct {
			chat.Tool
			Strict json.RawMessage `json:"strict"`
		}
		if err := decode(t.Function, member(at, "function"), &f); err != nil {
			return err
		}
		if err := r.addTool(f.Tool, member(at, "function")); err != nil {
			return err
		}
	}
	return nil
}

func (c *completionRequest) readChoice(r *request) error {
	if absent(c.ToolChoice) {
		return nil
	}
	if mode, ok := isString(c.ToolChoice); ok {
		return r.choose(mode, "", "tool_choice")
	}
	var choice struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		AllowedTools json.RawMessage `json:"allowed_tools"`
		Custom       json.RawMessage `json:"custom"`
	}
	if err := decode(c.ToolChoice, "tool_choice", &choice); err != nil {
		return err
	}
	return r.choose(choice.Type, choice.Function.Name, "tool_choice")
}

func (c *completionRequest) readFormat(r *request) error {
	if absent(c.ResponseFormat) {
		return nil
	}
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"json_schema"`
	}
	const at = "response_format"
	if err := decode(c.ResponseFormat, at, &f); err != nil {
		return err
	}
	if f.Type != "json_schema" {
		return r.format(f.Type, namedSchema{}, at)
	}
	var s namedSchema
	if err := decode(f.Schema, at+".json_schema", &s); err != nil {
		return err
	}
	return r.format(f.Type, s, at+".json_schema")
}

// namedSchema is a JSON Schema that an answer has to satisfy. Answers are checked whether or not it
// is strict.
type namedSchema struct {
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      json.RawMessage `json:"strict"`
}

// format reads the form of the answer: a text, a JSON object, or one that satisfies a schema.
func (r *request) format(kind string, s namedSchema, at string) error {
	switch kind {
	case "text":
		return nil
	case "json_object":
		return r.form("response_format", json.RawMessage(`{"type":"object"}`), at)
	case "json_schema":
		return r.form(s.Name, s.Schema, member(at, "schema"))
	}
	return unsupported(member(at, "type"), "a format of type "+kind)
}

func (c *completionRequest) readStreamOptions(r *request) error {
	if absent(c.StreamOptions) {
		return nil
	}
	var o struct {
		IncludeUsage       bool            `json:"include_usage"`
		IncludeObfuscation json.RawMessage `json:"include_obfuscation"`
	}
	if !r.Stream {
		return invalid("stream_options", "stream_options goes with stream: true only")
	}
	if err := decode(c.StreamOptions, "stream_options", &o); err != nil {
		return err
	}
	r.IncludeUsage = o.IncludeUsage
	return nil
}

func readLoki(m json.RawMessage, r *request) error {
	if absent(m) {
		return nil
	}
	return decode(m, "loki", &r.Loki)
}
