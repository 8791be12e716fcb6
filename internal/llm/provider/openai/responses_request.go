package openai

import (
	"encoding/json"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// responseRequest is the body of a request for a response. The server is asked to
// keep nothing: the conversation is sent whole, as everywhere, and the model's
// reasoning comes encrypted and goes back with it.
type responseRequest struct {
	Model           string         `json:"model"`
	Instructions    string         `json:"instructions,omitempty"`
	Input           []inputItem    `json:"input"`
	MaxOutputTokens int            `json:"max_output_tokens,omitempty"`
	Temperature     *float64       `json:"temperature,omitempty"`
	TopP            *float64       `json:"top_p,omitempty"`
	Reasoning       *sentReasoning `json:"reasoning,omitempty"`
	Store           bool           `json:"store"`
	Include         []string       `json:"include,omitempty"`
	Stream          bool           `json:"stream,omitempty"`
	Tools           []responseTool `json:"tools,omitempty"`
	ToolChoice      any            `json:"tool_choice,omitempty"` // "required" or a namedFunction
	Text            *responseText  `json:"text,omitempty"`
	CacheKey        string         `json:"prompt_cache_key,omitempty"`
}

type sentReasoning struct {
	Effort  provider.Effort `json:"effort"`
	Summary string          `json:"summary,omitempty"`
}

// inputItem is one item of the conversation: a message, a block of reasoning, a
// call of a function or its output.
type inputItem struct {
	Type string `json:"type"`

	Role    chat.Role `json:"role,omitempty"`    // message
	Content any       `json:"content,omitempty"` // message: a string or []inputPart

	ID        string       `json:"id,omitempty"`                // reasoning
	Summary   *[]inputPart `json:"summary,omitempty"`           // reasoning
	Encrypted string       `json:"encrypted_content,omitempty"` // reasoning

	CallID    string `json:"call_id,omitempty"`   // function_call, function_call_output
	Name      string `json:"name,omitempty"`      // function_call
	Arguments string `json:"arguments,omitempty"` // function_call
	Output    any    `json:"output,omitempty"`    // function_call_output: a string or []inputPart
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

type responseTool struct {
	Type string `json:"type"`
	normalize.ToolDeclaration
	Strict bool `json:"strict"` // which the server takes for true, and few schemas can bear
}

const encryptedReasoning = "reasoning.encrypted_content"

func newResponseRequest(req provider.Request, m wire.Model, d dialect) responseRequest {
	r := responseRequest{
		Model: m.RealName, Input: []inputItem{},
		MaxOutputTokens: req.MaxOutputTokens, Stream: req.Stream,
	}
	if !d.noSampling {
		r.Temperature, r.TopP = req.Temperature, req.TopP
	}
	if e := d.effort(req.Effort, m.Efforts); e != "" {
		r.Reasoning = &sentReasoning{Effort: e}
		if e != provider.NoEffort && !d.noSummary {
			r.Reasoning.Summary = "auto"
		}
	}
	if !d.noEncrypted {
		r.Include = []string{encryptedReasoning}
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, responseTool{Type: "function", ToolDeclaration: normalize.FunctionTool(t).Function})
	}
	if name := req.Choice.Name; name != "" {
		r.ToolChoice = namedFunction{Type: "function", Name: name}
	} else if req.Choice.Required {
		r.ToolChoice = "required"
	}
	var instructions []string
	for i, message := range req.Messages {
		if message.Role == chat.System {
			instructions = append(instructions, message.Text())
			continue
		}
		r.Input = append(r.Input, inputItems(message, d, i == len(req.Messages)-1)...)
	}
	r.Instructions = strings.Join(instructions, "\n\n")
	return r
}

// inputItems returns the items that a message is.
func inputItems(m chat.Message, d dialect, last bool) []inputItem {
	switch m.Role {
	case chat.Assistant:
		return assistantItems(m, d, last)
	case chat.ToolRole:
		return []inputItem{{Type: "function_call_output", CallID: d.callID(m.ToolCallID), Output: normalize.Content(m, inputText, inputImage)}}
	default:
		return []inputItem{{Type: "message", Role: m.Role, Content: normalize.Content(m, inputText, inputImage)}}
	}
}

func inputText(text string) inputPart { return inputPart{Type: "input_text", Text: text} }

func inputImage(url string) inputPart {
	return inputPart{Type: "input_image", ImageURL: url, Detail: "auto"}
}

// assistantItems returns text, reasoning and calls of an answer in their order. The
// server rejects reasoning that is not followed by what it led to, so a call follows the block that
// its signature names, and the others at the end.
func assistantItems(m chat.Message, d dialect, last bool) []inputItem {
	var items []inputItem
	placed := make([]bool, len(m.ToolCalls))
	call := func(i int) {
		c := m.ToolCalls[i]
		placed[i] = true
		items = append(items, inputItem{
			Type: "function_call", CallID: d.callID(c.ID), Name: c.Name, Arguments: string(normalize.Arguments(c.Arguments)),
		})
	}
	text := ""
	flush := func() {
		if text != "" {
			items = append(items, inputItem{Type: "message", Role: chat.Assistant, Content: text})
		}
		text = ""
	}
	for _, p := range m.Parts {
		switch p.Type {
		case chat.TextPart:
			text += p.Text
		case chat.ReasoningPart:
			proof, ok := readProof(p.Signature)
			if !ok || proof.Encrypted == "" || d.noReplay || d.noEncrypted {
				continue
			}
			flush()
			items = append(items, reasoningItem(p, proof))
			for i, c := range m.ToolCalls {
				if after, ok := readProof(c.Signature); ok && after.ID == proof.ID {
					call(i)
				}
			}
		}
	}
	if !last {
		text = chat.WithoutThinking(text)
	}
	flush()
	for i := range m.ToolCalls {
		if !placed[i] {
			call(i)
		}
	}
	return items
}

func reasoningItem(p chat.Part, proof proof) inputItem {
	summary := []inputPart{} // may be empty and must not be missing
	if p.Text != "" {
		summary = append(summary, inputPart{Type: "summary_text", Text: p.Text})
	}
	return inputItem{Type: "reasoning", ID: proof.ID, Summary: &summary, Encrypted: proof.Encrypted}
}

// proof is what the signature of a part of reasoning holds, as JSON. The signature
// of a call holds only the id, that of the reasoning right before it.
type proof struct {
	ID        string `json:"id"`
	Encrypted string `json:"encrypted_content,omitempty"`
}

func (p proof) String() string {
	data, err := value.Marshal(p)
	if err != nil {
		return ""
	}
	return string(data)
}

// readProof reads a signature; ok is false for those of other providers.
func readProof(signature string) (p proof, ok bool) {
	ok = strings.HasPrefix(signature, "{") && json.Unmarshal([]byte(signature), &p) == nil && p != proof{}
	return p, ok
}

// effort implements [payload].
func (r responseRequest) effort() provider.Effort {
	if r.Reasoning == nil {
		return ""
	}
	return r.Reasoning.Effort
}

// adapt implements [payload].
func (r responseRequest) adapt(words string, d dialect) (dialect, bool) {
	says := func(s string) bool { return strings.Contains(words, s) }
	encrypted := says("encrypted content") || says("encrypted_content")
	switch {
	case r.Text != nil && normalize.RefusesFormat(words):
		d.noForm = true
	case r.replays() && (encrypted && (says("verified") || says("decrypt") || says("invalid_encrypted_content")) || says("of type 'reasoning'")):
		d.noReplay = true // it is another model's or account's, or what followed it is gone
	case r.Include != nil && encrypted:
		d.noEncrypted = true
	case r.Reasoning != nil && r.Reasoning.Summary != "" && says("summar"):
		d.noSummary = true
	case r.Reasoning != nil && (says("reasoning.effort") || says("reasoning_effort") || says("'reasoning'") || says("does not support thinking")):
		d = d.withoutEffort(r.Reasoning.Effort, words)
	case r.CacheKey != "" && says("prompt_cache_key"):
		d.noCacheKey = true
	case (r.Temperature != nil || r.TopP != nil) && refusesSampling(words):
		d.noSampling = true
	default:
		return d, false
	}
	return d, true
}

// replays reports whether reasoning is sent back.
func (r responseRequest) replays() bool {
	for _, i := range r.Input {
		if i.Type == "reasoning" {
			return true
		}
	}
	return false
}

// inResponses returns a model's patch, which is written for chat completions, with
// the effort where the responses format has it.
func inResponses(p wire.Patch) wire.Patch {
	effort, ok := p.Body.Get("reasoning_effort")
	if !ok {
		return p
	}
	p = p.Without("reasoning_effort")
	if _, taken := p.Body.Get("reasoning"); !taken {
		reasoning := value.ObjectOf(value.Member{Name: "effort", Value: effort}).Value()
		p.Body = p.Body.Merge(value.ObjectOf(value.Member{Name: "reasoning", Value: reasoning}))
	}
	return p
}
