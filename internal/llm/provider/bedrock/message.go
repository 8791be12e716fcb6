package bedrock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// messageBuilder translates messages one after the other.
type messageBuilder struct {
	family   family
	messages []types.Message
	bad      []string // the URLs of images that cannot be sent
}

// err returns an error that names the images that cannot be sent, nil if all can.
func (b *messageBuilder) err() error {
	if len(b.bad) == 0 {
		return nil
	}
	return &provider.Error{
		Kind: provider.Invalid,
		Msg:  "Bedrock takes images only as data: URLs of png, jpeg, gif or webp; it cannot take " + strings.Join(b.bad, ", "),
	}
}

// add appends the content of m to the last message if that has the same role.
func (b *messageBuilder) add(m chat.Message, last bool) {
	var content []types.ContentBlock
	role := types.ConversationRoleUser
	switch m.Role {
	case chat.Assistant:
		role = types.ConversationRoleAssistant
		content = b.assistant(m, last)
	case chat.ToolRole:
		content = []types.ContentBlock{b.toolResult(m)}
	default:
		content = b.user(m)
	}
	if len(content) == 0 {
		return
	}
	if n := len(b.messages); n > 0 && b.messages[n-1].Role == role {
		b.messages[n-1].Content = append(b.messages[n-1].Content, content...)
		return
	}
	b.messages = append(b.messages, types.Message{Role: role, Content: content})
}

func (b *messageBuilder) user(m chat.Message) []types.ContentBlock {
	var content []types.ContentBlock
	for _, p := range m.Parts {
		switch p.Type {
		case chat.TextPart:
			if strings.TrimSpace(p.Text) != "" {
				content = append(content, &types.ContentBlockMemberText{Value: p.Text})
			}
		case chat.ImagePart:
			if image, ok := b.image(p.URL); ok {
				content = append(content, &types.ContentBlockMemberImage{Value: image})
			}
		}
	}
	return content
}

// assistant keeps reasoning, text and calls in order. Text that ends a conversation
// must be continued by the model: it must not end in white space then, and a <think> block in
// it belongs to it.
func (b *messageBuilder) assistant(m chat.Message, last bool) []types.ContentBlock {
	var content []types.ContentBlock
	first := true // no text has come yet
	for i, p := range m.Parts {
		switch p.Type {
		case chat.ReasoningPart:
			if block := reasoningBlock(p); block != nil {
				content = append(content, &types.ContentBlockMemberReasoningContent{Value: block})
			}
		case chat.TextPart:
			text := p.Text
			if first && !last {
				text = chat.WithoutThinking(text)
			}
			first = false
			if last && i == len(m.Parts)-1 && len(m.ToolCalls) == 0 {
				text = strings.TrimRight(text, " \t\r\n")
			}
			if strings.TrimSpace(text) != "" {
				content = append(content, &types.ContentBlockMemberText{Value: text})
			}
		}
	}
	for _, call := range m.ToolCalls {
		content = append(content, &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
			ToolUseId: aws.String(callID(call.ID)), Name: aws.String(toolName(call.Name)), Input: raw(normalize.Arguments(call.Arguments)),
		}})
	}
	return content
}

// noOutput replaces the output of a tool that printed nothing.
const noOutput = "(no output)"

func (b *messageBuilder) toolResult(m chat.Message) types.ContentBlock {
	var content []types.ToolResultContentBlock
	switch text := m.Text(); {
	case isObject(text):
		content = append(content, &types.ToolResultContentBlockMemberJson{Value: raw([]byte(text))})
	case strings.TrimSpace(text) != "":
		content = append(content, &types.ToolResultContentBlockMemberText{Value: text})
	}
	for _, p := range m.Parts {
		if p.Type != chat.ImagePart {
			continue
		}
		if image, ok := b.image(p.URL); ok {
			content = append(content, &types.ToolResultContentBlockMemberImage{Value: image})
		}
	}
	if content == nil {
		content = append(content, &types.ToolResultContentBlockMemberText{Value: noOutput})
	}
	r := types.ToolResultBlock{ToolUseId: aws.String(callID(m.ToolCallID)), Content: content}
	if m.Failed && b.family.takesStatus() {
		r.Status = types.ToolResultStatusError
	}
	return &types.ContentBlockMemberToolResult{Value: r}
}

// image returns the image of a data: URL.
func (b *messageBuilder) image(address string) (types.ImageBlock, bool) {
	format, data, err := parseImage(address)
	if err != nil {
		b.bad = append(b.bad, abridgeURL(address))
		return types.ImageBlock{}, false
	}
	return types.ImageBlock{Format: format, Source: &types.ImageSourceMemberBytes{Value: data}}, true
}

// parseImage reads a data: URL of an image in a format that Converse takes.
func parseImage(address string) (types.ImageFormat, []byte, error) {
	if !normalize.IsDataURL(address) {
		return "", nil, errors.New("not a data: URL")
	}
	media, data, err := normalize.DataURL(address)
	if err != nil {
		return "", nil, err
	}
	switch format := types.ImageFormat(strings.TrimPrefix(media, "image/")); format {
	case "jpg":
		return types.ImageFormatJpeg, data, nil
	case types.ImageFormatPng, types.ImageFormatJpeg, types.ImageFormatGif, types.ImageFormatWebp:
		return format, data, nil
	}
	return "", nil, fmt.Errorf("images of the type %s", media)
}

// abridgeURL returns an URL as an error shows it: without query, and of data: URLs
// only the beginning.
func abridgeURL(address string) string {
	if head, _, ok := strings.Cut(address, ","); ok && strings.HasPrefix(address, "data:") {
		return head + ",…"
	}
	address, _, _ = strings.Cut(address, "?")
	return address
}

// Limits of Converse, in characters.
const (
	maxToolName = 64
	maxCallID   = 64
)

// legalName returns s with what is neither a letter nor a digit of ASCII, nor one of
// _ and -, replaced by _, and cut to n characters.
func legalName(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), n)]
}

// callID returns id in a form that Converse takes: as it is if possible, else one
// that is derived from it, so that a call and its result stay together.
func callID(id string) string {
	if id != "" && legalName(id, maxCallID) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}
