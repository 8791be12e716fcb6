package wrap

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/goccy/go-yaml"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// Dry is a provider that answers with what it was given and sends nothing: a prompt
// as it is, behind its instructions, and a longer conversation as YAML.
type Dry struct{}

// Chat implements [provider.Chat].
func (Dry) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		text, err := show(req.Messages)
		if err != nil {
			yield(provider.Chunk{}, err)
			return
		}
		if yield(provider.Chunk{Kind: provider.Text, Text: text}, nil) {
			yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
		}
	}
}

func show(messages []chat.Message) (string, error) {
	n := len(messages)
	if n == 1 || n == 2 && messages[0].Role == chat.System {
		texts := make([]string, n)
		for i, m := range messages {
			texts[i] = content(m)
		}
		return strings.Join(texts, "\n\n"), nil
	}
	type entry struct {
		Role    chat.Role `yaml:"role"`
		Content string    `yaml:"content,omitempty"`
		Calls   []string  `yaml:"calls,omitempty"`
	}
	entries := make([]entry, n)
	for i, m := range messages {
		entries[i] = entry{Role: m.Role, Content: content(m)}
		for _, call := range m.ToolCalls {
			entries[i].Calls = append(entries[i].Calls, call.Name+" "+call.Arguments)
		}
	}
	data, err := yaml.MarshalWithOptions(entries, yaml.UseLiteralStyleIfMultiline(true))
	return string(data), err
}

// content is the text of a message, with a line for each picture.
func content(m chat.Message) string {
	lines := make([]string, 0, len(m.Parts))
	for _, p := range m.Parts {
		switch p.Type {
		case chat.TextPart:
			lines = append(lines, p.Text)
		case chat.ImagePart:
			lines = append(lines, picture(p.URL))
		}
	}
	return strings.Join(lines, "\n")
}

func picture(url string) string {
	kind, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok {
		return "[" + url + "]"
	}
	return fmt.Sprintf("[%s, %d bytes]", kind, len(data)/4*3)
}
