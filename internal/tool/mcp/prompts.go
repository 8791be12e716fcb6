package mcp

import (
	"context"
	"encoding/base64"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/llm/chat"
)

// Prompt is a prompt that a server offers.
type Prompt struct {
	Name        string
	Description string
	Arguments   []PromptArgument
}

// PromptArgument is an argument with which a prompt is filled in.
type PromptArgument struct {
	Name        string
	Description string
	Required    bool
}

// Prompts returns the prompts of the server with that id, in its order; nil if it has
// no prompts.
func (s *Scope) Prompts(ctx context.Context, server string) ([]Prompt, error) {
	return useServer(ctx, s, server, func(c *conn) ([]Prompt, error) { return c.listPrompts(ctx) })
}

func (c *conn) listPrompts(ctx context.Context) ([]Prompt, error) {
	if c.can.Prompts == nil {
		return nil, nil
	}
	var list []Prompt
	err := pages(func(cursor string) (string, error) {
		page, err := do(ctx, c, func(ctx context.Context) (*sdk.ListPromptsResult, error) {
			return c.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
		})
		if err != nil {
			return "", err
		}
		for _, p := range page.Prompts {
			if p != nil && len(list) < maxListed {
				list = append(list, promptOf(p))
			}
		}
		return c.more(page.NextCursor, len(list)), nil
	})
	return list, err
}

func promptOf(p *sdk.Prompt) Prompt {
	prompt := Prompt{Name: p.Name, Description: p.Description}
	for _, a := range p.Arguments {
		if a != nil {
			prompt.Arguments = append(prompt.Arguments, PromptArgument{a.Name, a.Description, a.Required})
		}
	}
	return prompt
}

// Prompt returns the messages of a filled-in prompt of the server with that id: from the
// user and the assistant, with texts and images.
func (s *Scope) Prompt(ctx context.Context, server, name string, arguments map[string]string) ([]chat.Message, error) {
	result, err := useServer(ctx, s, server, func(c *conn) (*sdk.GetPromptResult, error) {
		return do(ctx, c, func(ctx context.Context) (*sdk.GetPromptResult, error) {
			return c.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
		})
	})
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, 0, len(result.Messages))
	for _, m := range result.Messages {
		if m == nil {
			continue
		}
		role := chat.User
		switch m.Role {
		case "user":
		case "assistant":
			role = chat.Assistant
		default:
			return nil, fmt.Errorf("MCP server %q: prompt %q has a message of the role %q", server, name, m.Role)
		}
		messages = append(messages, chat.Message{Role: role, Parts: []chat.Part{part(m.Content)}})
	}
	return messages, nil
}

func part(content sdk.Content) chat.Part {
	if image, ok := content.(*sdk.ImageContent); ok {
		data := base64.StdEncoding.EncodeToString(image.Data)
		return chat.Part{Type: chat.ImagePart, URL: "data:" + image.MIMEType + ";base64," + data}
	}
	raw, err := content.MarshalJSON()
	if err != nil {
		return chat.Part{Type: chat.TextPart}
	}
	var shown contents
	shown.addBlock(raw)
	return chat.Part{Type: chat.TextPart, Text: shown.text()}
}
