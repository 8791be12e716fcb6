package gemini

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// skipValidator is the signature that Google names for a call that has none, because
// it comes from another model: "skip_thought_signature_validator" in base64.
//
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures
const skipValidator = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// conversation translates messages.
type conversation struct {
	signatures bool // send the ones that came with replies
	insists    bool // the model rejects calls without a signature
	contents   []content
}

// contents translates the conversation of a request.
func contents(req provider.Request, model string, a attempt) ([]content, error) {
	c := conversation{signatures: a.signatures, insists: generationOf(model) == levels}
	for i, m := range req.Messages {
		var err error
		switch m.Role {
		case chat.System: // see systemInstruction
		case chat.Assistant:
			c.assistant(m, i == len(req.Messages)-1)
		case chat.ToolRole:
			err = c.result(m, i > 0 && req.Messages[i-1].Role == chat.ToolRole)
		default:
			var parts []part
			parts, err = userParts(m.Parts)
			c.add(userRole, parts)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.contents, nil
}

// add appends a content, unless it would be empty, which the API rejects.
func (c *conversation) add(role string, parts []part) {
	if len(parts) > 0 {
		c.contents = append(c.contents, content{Parts: parts, Role: role})
	}
}

func (c *conversation) assistant(m chat.Message, last bool) {
	parts := c.answer(m.Parts, last)
	signed := false
	for _, call := range m.ToolCalls {
		signature := c.signature(call.Signature)
		signed = signed || signature != ""
		parts = append(parts, part{ThoughtSignature: signature, FunctionCall: &functionCall{
			ID: sentID(call.ID), Name: call.Name, Args: normalize.Arguments(call.Arguments),
		}})
	}
	// Of calls made at the same time only the first is signed.
	if n := len(m.ToolCalls); n > 0 && !signed && c.insists {
		parts[len(parts)-n].ThoughtSignature = skipValidator
	}
	c.add(modelRole, parts)
}

// answer returns the text of an assistant message. Reasoning is not sent back, but its
// signature is: with the text that follows it, else with the one before it.
func (c *conversation) answer(parts []chat.Part, last bool) []part {
	var list []part
	pending := ""
	for _, p := range parts {
		switch p.Type {
		case chat.ReasoningPart:
			pending = cmp.Or(c.signature(p.Signature), pending)
		case chat.TextPart:
			text := p.Text
			if len(list) == 0 && !last {
				text = chat.WithoutThinking(text)
			}
			if text == "" {
				continue
			}
			list = append(list, part{Text: text, ThoughtSignature: cmp.Or(c.signature(p.Signature), pending)})
			pending = ""
		}
	}
	if n := len(list); n > 0 && list[n-1].ThoughtSignature == "" {
		list[n-1].ThoughtSignature = pending
	}
	return list
}

// signature returns a signature, or "" if it is not to be sent, or cannot be the API's.
func (c *conversation) signature(s string) string {
	if _, err := base64.StdEncoding.DecodeString(s); err != nil || !c.signatures {
		return ""
	}
	return s
}

// result adds the response to a call: a content of its own, or, since all calls of a
// round are answered in one, part of the one before. Images follow the responses.
func (c *conversation) result(m chat.Message, continued bool) error {
	response := part{FunctionResponse: &functionResponse{
		ID: sentID(m.ToolCallID), Name: m.ToolName, Response: resultObject(m),
	}}
	images, err := userParts(imagesOf(m.Parts))
	if err != nil {
		return err
	}
	if n := len(c.contents); continued && n > 0 {
		round := &c.contents[n-1]
		at := 0
		for at < len(round.Parts) && round.Parts[at].FunctionResponse != nil {
			at++
		}
		round.Parts = append(slices.Insert(round.Parts, at, response), images...)
		return nil
	}
	c.add(userRole, append([]part{response}, images...))
	return nil
}

// resultObject returns the response to a call as the API wants it: an object with the
// member output, or error.
func resultObject(m chat.Message) []byte {
	value := bytes.TrimSpace([]byte(m.Text()))
	if !json.Valid(value) {
		value = quote(m.Text())
	}
	member := `{"output":`
	if m.Failed {
		member = `{"error":`
	}
	return append(append([]byte(member), value...), '}')
}

// quote returns s as a JSON string.
func quote(s string) []byte {
	quoted, _ := json.Marshal(s) // a string can always be written
	return quoted
}

// sentID returns a call's id as it is sent: ids that were counted here are not, since
// the API gave none.
func sentID(id string) string {
	if n, ok := strings.CutPrefix(id, normalize.NumberedID); ok {
		if _, err := strconv.Atoi(n); err == nil {
			return ""
		}
	}
	return id
}
