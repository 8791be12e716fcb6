package engine_test

import (
	"context"
	"fmt"
	"iter"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
)

// scripted is a provider that makes its replies one after the other.
type scripted struct{ replies [][]provider.Chunk }

func (s *scripted) ChatModel(_ context.Context, id string) (engine.Model, error) {
	return engine.Model{ID: id, Provider: s, SupportsTools: true}, nil
}

func (s *scripted) Chat(context.Context, provider.Request) iter.Seq2[provider.Chunk, error] {
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return func(yield func(provider.Chunk, error) bool) {
		for _, chunk := range reply {
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// weather is one tool.
type weather struct{}

func (weather) Declarations() []chat.Tool { return []chat.Tool{{Name: "weather"}} }

func (weather) Call(context.Context, chat.ToolCall, steps.Steps) (text string, failed bool, err error) {
	return "12 degrees, rain", false, nil
}

// The model asks for a tool in its first reply and answers in the second. Everything that
// happens is an event.
func ExampleEngine_Run() {
	models := &scripted{replies: [][]provider.Chunk{
		{
			{Kind: provider.ToolCall, ToolCall: chat.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Oslo"}`}},
			{Kind: provider.End, Stop: chat.StopToolCalls, Usage: chat.Usage{InputTokens: 20, OutputTokens: 5}},
		},
		{
			{Kind: provider.Text, Text: "Take an "},
			{Kind: provider.Text, Text: "umbrella."},
			{Kind: provider.End, Stop: chat.StopEnd, Usage: chat.Usage{InputTokens: 40, OutputTokens: 4}},
		},
	}}
	e, err := engine.New(engine.Options{Models: models})
	if err != nil {
		fmt.Println(err)
		return
	}
	show := event.Func(func(_ context.Context, ev event.Event) error {
		fmt.Println(ev.Body.Type())
		return nil
	})
	rc := &engine.RequestContext{Model: "example:model", Events: event.NewScope(show, event.Source{}, nil)}
	reply, err := e.Run(context.Background(), rc, engine.Request{
		Messages: []chat.Message{chat.Text(chat.User, "What do I need in Oslo today?")},
		Tools:    weather{},
	})
	fmt.Printf("%s (%d messages, %d tokens) %v\n", reply.Text, len(reply.Messages), reply.Usage.Total(), err)
	// Output:
	// model_call
	// reply
	// tool_call
	// tool_result
	// model_call
	// delta
	// delta
	// reply
	// Take an umbrella. (3 messages, 69 tokens) <nil>
}
