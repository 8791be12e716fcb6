package openai

import (
	"cmp"
	"context"
	"slices"

	"loki/internal/frontend/server/rest"
	"loki/internal/frontend/server/stream"
	"loki/internal/llm/chat"
)

// completionInput is a request for a chat completion.
type completionInput struct {
	RunID string `header:"X-Loki-Run-Id" doc:"run of an agent whose question the last user message answers, as loki.run_id"`
	Body  completionRequest
}

// completionRequest is the body of a request for a chat completion. The last members can only be had as they are anyway.
type completionRequest struct {
	Common
	Messages            []messageShape `json:"messages" minItems:"1" nullable:"false"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
	Reasoning           reasoningShape `json:"reasoning,omitempty" doc:"its effort is read, as other servers do"`
	MaxTokens           int            `json:"max_tokens,omitempty" minimum:"1"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty" minimum:"1"`
	Stop                textsShape     `json:"stop,omitempty"`
	Seed                *int64         `json:"seed,omitempty"`
	FrequencyPenalty    float64        `json:"frequency_penalty,omitempty" minimum:"-2" maximum:"2"`
	PresencePenalty     float64        `json:"presence_penalty,omitempty" minimum:"-2" maximum:"2"`
	ResponseFormat      *formatShape   `json:"response_format,omitempty"`

	N          int            `json:"n,omitempty" minimum:"1" maximum:"1"`
	Logprobs   bool           `json:"logprobs,omitempty" enum:"false"`
	LogitBias  map[string]int `json:"logit_bias,omitempty" maxProperties:"0"`
	Modalities []string       `json:"modalities,omitempty" enum:"text" nullable:"false"`
	Verbosity  string         `json:"verbosity,omitempty" enum:"medium"`
}

// maxStops is how many texts may end an answer.
const maxStops = 16

// request returns what a client asks for.
func (c *completionRequest) request() (*request, error) {
	r, err := c.Common.request()
	if err != nil {
		return nil, err
	}
	if len(c.Stop) > maxStops || slices.Contains(c.Stop, "") {
		return nil, invalid("stop", "stop may have up to %d texts, none empty", maxStops)
	}
	r.MaxOutputTokens = max(c.MaxTokens, c.MaxCompletionTokens)
	r.Constraints.Stop, r.Seed, r.FrequencyPenalty, r.PresencePenalty = c.Stop, c.Seed, c.FrequencyPenalty, c.PresencePenalty
	if err := r.effort(cmp.Or(c.ReasoningEffort, c.Reasoning.Effort), "reasoning_effort"); err != nil {
		return nil, err
	}
	if err := r.format(c.ResponseFormat, "response_format"); err != nil {
		return nil, err
	}
	messages := make([]chat.Message, len(c.Messages))
	for i := range c.Messages {
		if messages[i], err = c.Messages[i].read(element("messages", i)); err != nil {
			return nil, err
		}
	}
	return r, r.take(messages, "messages")
}

// complete answers POST /v1/chat/completions.
func (s *service) complete(ctx context.Context, in *completionInput) (*rest.Reply, error) {
	r, err := in.Body.request()
	if err != nil {
		return nil, err
	}
	if in.RunID != "" {
		r.Loki.RunID = in.RunID
	}
	if err := s.load(ctx, r); err != nil {
		return nil, err
	}
	if !r.Stream {
		a, err := s.ask(ctx, r, nil)
		if err != nil {
			return nil, err
		}
		return rest.JSON(0, newCompletion(r, a)), nil
	}
	return rest.Stream(func(ctx context.Context, w *stream.Writer) error {
		out := newChunks(w, r)
		a, err := s.ask(ctx, r, out)
		if err != nil {
			return err
		}
		return out.finish(ctx, a, r.IncludeUsage)
	}), nil
}
