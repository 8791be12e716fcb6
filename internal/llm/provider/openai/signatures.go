package openai

import (
	"encoding/json"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider/wire"
)

// Signatures of compatible servers bear a mark, because a conversation may hold those of
// several providers, and one rejects what it has not signed.
const (
	detailsMark = "reasoning_details:" // of a part: all reasoning_details of a reply, as JSON
	googleMark  = "google:"            // of a call: what Google's API calls thought_signature
)

// skipValidator is the signature that Google names for a call that has none, because it
// comes from another model.
//
// Source: https://ai.google.dev/gemini-api/docs/thought-signatures
const skipValidator = "skip_thought_signature_validator"

// extraContent is what Google's compatible API adds to a call.
type extraContent struct {
	Google struct {
		ThoughtSignature wire.String `json:"thought_signature"`
	} `json:"google"`
}

// signature returns the signature of a call as it is kept.
func (e *extraContent) signature() string {
	if e == nil || e.Google.ThoughtSignature == "" {
		return ""
	}
	return googleMark + string(e.Google.ThoughtSignature)
}

// extra returns the signature of a call in the form in which it came, nil if no compatible API has
// one. The first call of a round gets one in any case if d says so.
func (d dialect) extra(c chat.ToolCall, first bool) *extraContent {
	own, ok := strings.CutPrefix(c.Signature, googleMark)
	switch {
	case d.noSignatures:
		return nil
	case !ok && !(d.wantsSignatures && first):
		return nil
	case !ok:
		own = skipValidator
	}
	e := &extraContent{}
	e.Google.ThoughtSignature = wire.String(own)
	return e
}

// reasoningDetails gathers the reasoning of OpenRouter: blocks of text, summaries and
// encrypted data, which go back as they came.
type reasoningDetails struct {
	blocks []map[string]json.RawMessage
}

// add takes the value of a member reasoning_details, and returns the words in it. Of a
// streamed reply it is a piece: what has the type and the index of the last block continues
// that.
func (r *reasoningDetails) add(v json.RawMessage, whole bool) string {
	var list []map[string]json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return ""
	}
	var words strings.Builder
	for _, piece := range list {
		if piece == nil {
			continue
		}
		for _, name := range []string{"text", "summary"} {
			words.WriteString(wire.Unquote(piece[name]))
		}
		if n := len(r.blocks); !whole && n > 0 && continues(r.blocks[n-1], piece) {
			extend(r.blocks[n-1], piece)
			continue
		}
		r.blocks = append(r.blocks, piece)
	}
	return words.String()
}

// continues reports whether piece is a part of block.
func continues(block, piece map[string]json.RawMessage) bool {
	index, ok := piece["index"]
	return ok && string(index) != "null" && string(index) == string(block["index"]) && string(piece["type"]) == string(block["type"])
}

// extend appends the words of a piece to a block. Anything else of it counts if it says
// something.
func extend(block, piece map[string]json.RawMessage) {
	for name, v := range piece {
		switch name {
		case "text", "summary", "data":
			text, err := value.Marshal(wire.Unquote(block[name]) + wire.Unquote(v))
			if err == nil {
				block[name] = text
			}
		default:
			if s := string(v); s != "null" && s != `""` {
				block[name] = v
			}
		}
	}
}

// signature returns the blocks as they are kept, "" for none.
func (r *reasoningDetails) signature() string {
	if len(r.blocks) == 0 {
		return ""
	}
	text, err := value.Marshal(r.blocks)
	if err != nil {
		return ""
	}
	return detailsMark + string(text)
}

// detailsOf returns the reasoning_details of a message, nil if it has none.
func detailsOf(m chat.Message) json.RawMessage {
	for _, p := range m.Parts {
		if text, ok := strings.CutPrefix(p.Signature, detailsMark); ok && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return nil
}
