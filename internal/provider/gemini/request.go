package gemini

import (
	"bytes"
	"encoding/json"

	"google.golang.org/genai"

	"loki/internal/chat"
	"loki/internal/provider"
)

// attempt is a request in one of the forms that a model may or may not take.
type attempt struct {
	thinking   *genai.ThinkingConfig
	signatures bool // signatures of the conversation are sent
}

// config translates everything of a request but its conversation.
func config(req provider.Request, a attempt) (*genai.GenerateContentConfig, error) {
	tools, err := declarations(req.Tools)
	if err != nil {
		return nil, err
	}
	c := &genai.GenerateContentConfig{
		HTTPOptions:           &genai.HTTPOptions{ExtrasRequestProvider: restoreBody},
		AutomaticContinuation: genai.Ptr(false), // a request is sent once
		SystemInstruction:     systemInstruction(req.Messages),
		Tools:                 tools,
		ThinkingConfig:        a.thinking,
		MaxOutputTokens:       int32(min(max(req.MaxOutputTokens, 0), 1<<31-1)),
	}
	if req.Temperature != nil {
		c.Temperature = genai.Ptr(float32(*req.Temperature))
	}
	if req.TopP != nil {
		c.TopP = genai.Ptr(float32(*req.TopP))
	}
	return c, nil
}

func systemInstruction(messages []chat.Message) *genai.Content {
	if len(messages) == 0 || messages[0].Role != chat.System {
		return nil
	}
	var parts []*genai.Part
	for _, p := range messages[0].Parts {
		if p.Type == chat.TextPart && p.Text != "" {
			parts = append(parts, genai.NewPartFromText(p.Text))
		}
	}
	if parts == nil {
		return nil
	}
	return &genai.Content{Parts: parts}
}

// declarations declares tools. A schema without properties is left out: the API
// rejects objects that are empty.
func declarations(tools []chat.Tool) ([]*genai.Tool, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	list := make([]*genai.FunctionDeclaration, 0, len(tools))
	for _, t := range tools {
		d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
		has, err := hasParameters(t.Parameters)
		if err != nil {
			return nil, &provider.Error{Kind: provider.Invalid, Msg: "the schema of tool " + t.Name + " is not a JSON object", Err: err}
		}
		if has {
			d.ParametersJsonSchema = verbatim(t.Parameters)
		}
		list = append(list, d)
	}
	return []*genai.Tool{{FunctionDeclarations: list}}, nil
}

// composition are the keywords that describe an object without naming properties.
var composition = [...]string{"$ref", "allOf", "anyOf", "oneOf", "additionalProperties", "patternProperties"}

// hasParameters reports whether a schema allows an object to have members.
func hasParameters(schema json.RawMessage) (bool, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return false, nil
	}
	var s object
	if err := json.Unmarshal(schema, &s); err != nil {
		return false, err
	}
	var properties object
	if err := unmarshal(s["properties"], &properties); err != nil {
		return false, err
	}
	for _, keyword := range composition {
		if value := string(s[keyword]); value != "" && value != "false" && value != "null" {
			return true, nil
		}
	}
	return len(properties) > 0, nil
}
