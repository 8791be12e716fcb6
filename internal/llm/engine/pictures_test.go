package engine

import (
	"context"
	"strings"
	"testing"

	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// camera is a tool that returns a picture.
type camera struct{}

func (camera) Declarations() []chat.Tool { return []chat.Tool{{Name: "shoot"}} }

func (camera) Call(context.Context, chat.ToolCall, steps.Steps) (string, bool, error) {
	return "[picture 1: image/png, 4 bytes]", false, nil
}

func (camera) Images(call chat.ToolCall) []chat.Part {
	return []chat.Part{{Type: chat.ImagePart, URL: "data:image/png;base64," + call.ID}}
}

// TestPicturesOfTools: a model that sees gets the pictures of a tool, another one a note, and both have them in the history.
func TestPicturesOfTools(t *testing.T) {
	for _, sees := range []bool{true, false} {
		f := &fake{replies: [][]provider.Chunk{calls("", chat.ToolCall{ID: "AAAA", Name: "shoot", Arguments: "{}"}), says("A cat.")}}
		model := Model{Provider: f, SupportsTools: true, SupportsImages: sees}
		rc, _ := newContext()
		reply, err := newEngine(t, model).Run(t.Context(), rc, Request{Messages: []chat.Message{chat.Text(chat.User, "Look")}, Tools: camera{}})
		if err != nil {
			t.Fatal(err)
		}
		sent := f.requests[1].Messages[2]
		if got := len(imagesOf(sent)) == 1; got != sees || strings.Contains(sent.Text(), "not known to see") == sees {
			t.Errorf("sees %v: sent %+v", sees, sent)
		}
		if kept := reply.Messages[1]; len(imagesOf(kept)) != 1 || kept.Text() != "[picture 1: image/png, 4 bytes]" {
			t.Errorf("kept %+v", kept)
		}
	}
}
