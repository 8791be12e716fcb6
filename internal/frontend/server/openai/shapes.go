package openai

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"loki/internal/llm/chat"
)

// Common are the members of requests for completions and for responses. A member of type json.RawMessage changes nothing here.
type Common struct {
	Model             string         `json:"model" minLength:"1" doc:"client:model, role:NAME, agent:NAME, or a bare name"`
	Temperature       *float64       `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	TopP              *float64       `json:"top_p,omitempty" minimum:"0" maximum:"1"`
	Tools             []toolShape    `json:"tools,omitempty" nullable:"false"`
	ToolChoice        *choiceShape   `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool          `json:"parallel_tool_calls,omitempty" doc:"false: at most one call in an answer"`
	Stream            bool           `json:"stream,omitempty"`
	StreamOptions     *streamOptions `json:"stream_options,omitempty"`
	Loki              loki           `json:"loki,omitempty"`

	TopLogprobs          int             `json:"top_logprobs,omitempty" maximum:"0"`
	User                 json.RawMessage `json:"user,omitempty"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier,omitempty"`
	Metadata             json.RawMessage `json:"metadata,omitempty"`
	Store                *bool           `json:"store,omitempty"`
	ServiceTier          json.RawMessage `json:"service_tier,omitempty"`
	PromptCacheKey       json.RawMessage `json:"prompt_cache_key,omitempty"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention,omitempty"`
	Prediction           json.RawMessage `json:"prediction,omitempty"`
}

type streamOptions struct {
	IncludeUsage       bool            `json:"include_usage,omitempty"`
	IncludeObfuscation json.RawMessage `json:"include_obfuscation,omitempty"`
}

// toolShape is a function of the client's. Chat completions nest what responses do not.
type toolShape struct {
	Type string `json:"type" enum:"function"`
	FunctionShape
	Function *FunctionShape `json:"function,omitempty"`
}

// FunctionShape is a function as chat completions nest it.
type FunctionShape struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" doc:"JSON Schema"`
	Strict      *bool           `json:"strict,omitempty"`
}

// choiceShape says which tools the model may call: a mode, or a function.
type choiceShape struct{ choiceObject }

type choiceObject struct {
	Type     string         `json:"type" enum:"function"`
	Name     string         `json:"name,omitempty"`
	Function *FunctionShape `json:"function,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *choiceShape) UnmarshalJSON(data []byte) error {
	return orText(data, &c.choiceObject, func(mode string) { c.Type = mode })
}

// MarshalJSON implements [json.Marshaler].
func (c choiceShape) MarshalJSON() ([]byte, error) {
	if c.Type != "function" {
		return json.Marshal(c.Type)
	}
	return json.Marshal(c.choiceObject)
}

// Schema implements [huma.SchemaProvider].
func (choiceShape) Schema(r huma.Registry) *huma.Schema {
	s := textOr[choiceObject](r)
	s.OneOf[0].Enum = []any{"none", "auto", "required"}
	return s
}

// formatShape is the form of an answer. Chat completions nest what responses do not.
type formatShape struct {
	Type string `json:"type" enum:"text,json_object,json_schema"`
	SchemaShape
	JSONSchema *SchemaShape `json:"json_schema,omitempty"`
}

// SchemaShape is a JSON Schema that an answer must satisfy. Answers are checked whether or not it is strict.
type SchemaShape struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"JSON Schema"`
	Strict      *bool           `json:"strict,omitempty"`
}

// contentShape is what a message says: a text, or parts.
type contentShape []partShape

// UnmarshalJSON implements [json.Unmarshaler].
func (c *contentShape) UnmarshalJSON(data []byte) error {
	return orText(data, (*[]partShape)(c), func(text string) { *c = contentShape{{Type: "text", Text: text}} })
}

// Schema implements [huma.SchemaProvider].
func (contentShape) Schema(r huma.Registry) *huma.Schema { return textOr[[]partShape](r) }

// partShape is a part of a message, in the words of either format.
type partShape struct {
	Type     string      `json:"type" enum:"text,input_text,output_text,refusal,image_url,input_image,file,input_file,reasoning_text"`
	Text     string      `json:"text,omitempty"`
	Refusal  string      `json:"refusal,omitempty"`
	ImageURL *imageShape `json:"image_url,omitempty"`
	File     *FileShape  `json:"file,omitempty"`
	FileShape
	FileURL string `json:"file_url,omitempty"`

	Detail      json.RawMessage `json:"detail,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Logprobs    json.RawMessage `json:"logprobs,omitempty"`
	Parsed      json.RawMessage `json:"parsed,omitempty"`
}

// FileShape is an attached file.
type FileShape struct {
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty" doc:"a data: URL, or base64"`
}

// imageShape is where a picture is. The model decides how closely it looks.
type imageShape struct{ imageObject }

type imageObject struct {
	URL    string          `json:"url" doc:"a data: or an https: URL"`
	Detail json.RawMessage `json:"detail,omitempty"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (i *imageShape) UnmarshalJSON(data []byte) error {
	return orText(data, &i.imageObject, func(url string) { i.URL = url })
}

// Schema implements [huma.SchemaProvider].
func (imageShape) Schema(r huma.Registry) *huma.Schema { return textOr[imageObject](r) }

// textsShape is one text, or several.
type textsShape []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textsShape) UnmarshalJSON(data []byte) error {
	return orText(data, (*[]string)(t), func(text string) { *t = textsShape{text} })
}

// Schema implements [huma.SchemaProvider].
func (textsShape) Schema(r huma.Registry) *huma.Schema { return textOr[[]string](r) }

// orText decodes JSON into v, or has text take it if it is a string.
func orText(data []byte, v any, text func(string)) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, v)
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	text(s)
	return nil
}

// textOr returns the schema of a text or of a T.
func textOr[T any](r huma.Registry) *huma.Schema {
	other := r.Schema(reflect.TypeFor[T](), true, reflect.TypeFor[T]().Name())
	if other.Type == huma.TypeArray {
		other.Nullable = false
	}
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, other}}
}

// request returns what the members say that both formats have.
func (c *Common) request() (*request, error) {
	r := &request{
		Model: c.Model, Sampling: chat.Sampling{Temperature: c.Temperature, TopP: c.TopP}, Stream: c.Stream, Loki: c.Loki,
		OneCall: c.ParallelToolCalls != nil && !*c.ParallelToolCalls,
	}
	if c.StreamOptions != nil {
		if !c.Stream {
			return nil, invalid("stream_options", "stream_options goes with stream: true only")
		}
		r.IncludeUsage = c.StreamOptions.IncludeUsage
	}
	for i, t := range c.Tools {
		at, f := element("tools", i), &t.FunctionShape
		if t.Function != nil {
			at, f = member(at, "function"), t.Function
		}
		if err := r.addTool(chat.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters}, at); err != nil {
			return nil, err
		}
	}
	if c.ToolChoice == nil {
		return r, nil
	}
	name := c.ToolChoice.Name
	if f := c.ToolChoice.Function; f != nil {
		name = f.Name
	}
	return r, r.choose(c.ToolChoice.Type, name, "tool_choice")
}

// format reads the form of the answer at a place: a text, a JSON object, or one that satisfies a schema.
func (r *request) format(f *formatShape, at string) error {
	s := &SchemaShape{}
	switch {
	case f == nil || f.Type == "text":
		return nil
	case f.Type == "json_object":
		s.Name, s.Schema = "response_format", json.RawMessage(`{"type":"object"}`)
	case f.JSONSchema != nil:
		s, at = f.JSONSchema, member(at, "json_schema")
	default:
		s = &f.SchemaShape
	}
	return r.form(s.Name, s.Schema, member(at, "schema"))
}

// read returns the parts of a message at a place. A text without characters is none.
func (c contentShape) read(at string, role chat.Role) (parts []chat.Part, err error) {
	for i, p := range c {
		place := element(at, i)
		var one chat.Part
		switch p.Type {
		case "image_url":
			one, err = readImage(p.ImageURL, member(place, "image_url.url"))
		case "input_image":
			one, err = readImage(p.ImageURL, member(place, "image_url"))
		case "file", "input_file":
			f := &p.FileShape
			if p.File != nil {
				place, f = member(place, "file"), p.File
			}
			one, err = readFile(f.Filename, f.FileData, p.FileURL, place)
		default:
			one = chat.Part{Type: chat.TextPart, Text: p.Text + p.Refusal}
		}
		if err == nil && one.Type != chat.TextPart && (role == chat.Assistant || role == chat.System) {
			err = unsupportedError(member(place, "type"), "a part of type "+p.Type+" in a message of the "+string(role))
		}
		if err != nil {
			return nil, err
		}
		if one.Text != "" || one.Type != chat.TextPart {
			parts = append(parts, one)
		}
	}
	return parts, nil
}
