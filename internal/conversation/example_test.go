package conversation_test

import (
	"context"
	"fmt"
	"iter"

	"loki/internal/agent/role"
	"loki/internal/conversation"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/provider"
)

// echo is a model that repeats what it gets.
type echo struct{}

// ChatModel implements [engine.Models].
func (echo) ChatModel(_ context.Context, id string) (engine.Model, error) {
	return engine.Model{ID: id, Provider: echo{}, SupportsTools: true}, nil
}

// Chat implements [provider.Chat].
func (echo) Chat(_ context.Context, req provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		for _, m := range req.Messages {
			if !yield(provider.Chunk{Kind: provider.Text, Text: fmt.Sprintf("[%s] %s ", m.Role, m.Text())}, nil) {
				return
			}
		}
		yield(provider.Chunk{Kind: provider.End, Stop: chat.StopEnd}, nil)
	}
}

func Example() {
	e, err := engine.New(engine.Options{Models: echo{}})
	if err != nil {
		panic(err)
	}
	service := &conversation.Service{Engine: e, Settings: chat.Settings{Model: "test:echo"}}

	c := service.Begin(conversation.Options{})
	if err := c.UseRole(context.Background(), role.Role{Name: "poet", Prompt: "Answer in verse."}); err != nil {
		panic(err)
	}
	answer, err := c.Ask(context.Background(), conversation.Question{Asked: conversation.Asked{User: chat.Text(chat.User, "Name a river.")}})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Text)
	// Output: [system] Answer in verse. [user] Name a river.
}
