package builtin

import (
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

const bees = `Bees tell each other by a dance where flowers are. The dance of the bees shows the direction of the flowers.
The length of the dance shows how far away the flowers are from the bees. Copper got cheaper last week. Frisch saw the dance first.`

func TestExtract(t *testing.T) {
	const (
		tell      = "Bees tell each other by a dance where flowers are."
		direction = "The dance of the bees shows the direction of the flowers."
		length    = "The length of the dance shows how far away the flowers are from the bees."
	)
	for _, tt := range []struct {
		name, system, user string
		want               []string // chunks
	}{
		{name: "default", user: bees, want: []string{tell, " " + direction, " " + length}},
		{name: "system", system: "Summarise in one sentence.", user: bees, want: []string{direction}},
		{name: "user", user: "Summarise in one sentence:\n" + bees, want: []string{direction}},
		{name: "user_wins", system: "Answer in four sentences.", user: "One sentence, please.\n\n" + bees, want: []string{direction}},
		{name: "system_completes", system: "Use bullets.", user: "Summarise in two sentences\n" + bees, want: []string{"- " + direction, "\n- " + length}},
		{name: "bullets", user: "2 bullets please:\n" + bees, want: []string{"- " + direction, "\n- " + length}},
		{name: "words", user: "Summarise in 21 words: " + bees, want: []string{tell, " " + direction}},
		{name: "attached_file", user: "In one sentence, what is this?\n\n============ FILE: b.txt ============\n" + bees, want: []string{direction}},
		{name: "short_text", user: "Only this.", want: []string{"Only this."}},
		{name: "empty", user: " \n", want: []string{noText}},
		{name: "instruction_only", user: "Summarise this in two sentences", want: []string{noText}},
		{name: "instruction_with_colon_only", system: "Be brief.", user: "Summarise:", want: []string{noText}},
		{name: "instruction_as_text", system: "Summarise.", user: "Please write two paragraphs.", want: []string{"Please write two paragraphs."}},
		{name: "code_only", user: "```\nx := 1\n```", want: []string{noText}},
		{name: "json_is_not_made", system: "Summarise in one sentence. Respond with ONLY a JSON object.\nSchema:\n{\"type\": \"object\"}", user: bees, want: []string{direction}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := provider.Request{Model: Extract, Messages: user(tt.user)}
			if tt.system != "" {
				req.Messages = slices.Insert(req.Messages, 0, chat.Text(chat.System, tt.system))
			}
			hot := 2.0
			req.Temperature = &hot // means nothing to this model
			if got := texts(chunks(t, New(Options{}), req)); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestExtractReadsTheLastUserMessage(t *testing.T) {
	r := collect(t, New(Options{}), provider.Request{Model: Extract, Messages: []chat.Message{
		chat.Text(chat.User, "Old text."), chat.Text(chat.Assistant, "Old text."), chat.Text(chat.User, "New text."),
	}})
	if r.Text != "New text." || r.Usage.Estimated {
		t.Errorf("got %q with usage %+v", r.Text, r.Usage)
	}
}

func TestExtractInOnePiece(t *testing.T) {
	req := provider.Request{Model: Extract, Messages: user(bees)}
	whole := collect(t, New(Options{}), req)
	if streamed := strings.Join(texts(chunks(t, New(Options{}), req)), ""); whole.Text != streamed || whole.Chunks != 2 {
		t.Errorf("got %q in %d chunks, want %q in one chunk and the end", whole.Text, whole.Chunks, streamed)
	}
}
