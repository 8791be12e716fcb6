package gemini

import (
	"strconv"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// attempt is a request in one of the forms that a model may or may not take.
type attempt struct {
	thinking   *thinkingConfig
	signatures bool // signatures of the conversation are sent
	format     bool // the form of the reply is asked for
	penalties  bool // penalties of repetition are sent
}

// takesFormat reports whether a model is known to take the form of a reply: Gemini does from
// 2.5 on, and along with tools from 3 on.
func takesFormat(req provider.Request, model string) bool {
	major, minor := versionOf(model)
	return major >= 3 || major == 2 && minor >= 5 && len(req.Tools) == 0
}

// versionOf reads the version of a Gemini from the name of a model, 0.0 for others.
func versionOf(model string) (major, minor int) {
	_, name, _ := strings.Cut(model, "gemini-")
	name, _, _ = strings.Cut(name, "-")
	first, second, _ := strings.Cut(name, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0
	}
	minor, _ = strconv.Atoi(second) // there may be none
	return major, minor
}

// newRequest translates a request for a model.
func newRequest(req provider.Request, model string, a attempt) (*generateRequest, error) {
	conversation, err := contents(req, model, a)
	if err != nil {
		return nil, err
	}
	r := &generateRequest{
		Contents:          conversation,
		SystemInstruction: systemInstruction(req.Messages),
		Tools:             declarations(req.Tools),
		GenerationConfig: generationConfig{
			MaxOutputTokens: max(req.MaxOutputTokens, 0),
			Temperature:     req.Temperature,
			ThinkingConfig:  a.thinking,
			TopP:            req.TopP,
			StopSequences:   normalize.Stops(req, mostStops),
			Seed:            req.Seed,
		},
	}
	if a.penalties {
		r.GenerationConfig.FrequencyPenalty, r.GenerationConfig.PresencePenalty = req.FrequencyPenalty, req.PresencePenalty
	}
	if req.Choice.Required {
		r.ToolConfig = &toolConfig{functionCallingConfig{Mode: "ANY"}}
		if name := req.Choice.Name; name != "" {
			r.ToolConfig.FunctionCallingConfig.Allowed = []string{name}
		}
	}
	if shape, ok := normalize.GeminiFormat(req.Format); ok && a.format {
		r.GenerationConfig.ResponseMIMEType, r.GenerationConfig.ResponseJSONSchema = "application/json", shape
	}
	return r, nil
}

// mostStops is how many texts at which it ends a request may have.
const mostStops = 5

func systemInstruction(messages []chat.Message) *content {
	if len(messages) == 0 || messages[0].Role != chat.System {
		return nil
	}
	var parts []part
	for _, p := range messages[0].Parts {
		if p.Type == chat.TextPart && p.Text != "" {
			parts = append(parts, part{Text: p.Text})
		}
	}
	if parts == nil {
		return nil
	}
	return &content{Parts: parts, Role: userRole}
}

// declarations declares tools. A schema without properties is left out: the API
// rejects objects that are empty.
func declarations(tools []chat.Tool) []toolList {
	if len(tools) == 0 {
		return nil
	}
	list := make([]functionDeclaration, 0, len(tools))
	for _, t := range tools {
		d := functionDeclaration{Name: t.Name, Description: t.Description}
		if normalize.HasMembers(t.Parameters) {
			d.ParametersJSONSchema = t.Parameters
		}
		list = append(list, d)
	}
	return []toolList{{FunctionDeclarations: list}}
}
