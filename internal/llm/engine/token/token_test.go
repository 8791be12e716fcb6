package token_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"

	"loki/internal/base/fault"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
)

func TestModels(t *testing.T) {
	const text = "antidisestablishmentarianism in 日本語"
	o200k, cl100k, estimate := token.For("gpt-4o").Text(text), token.For("gpt-4").Text(text), token.Estimate().Text(text)
	if o200k == cl100k || o200k == estimate || cl100k == estimate {
		t.Fatalf("the text does not tell the counters apart: %d, %d, %d", o200k, cl100k, estimate)
	}
	image := chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.ImagePart, URL: "https://x"}}}
	for _, tt := range []struct {
		model string
		want  int
		image int
	}{
		{"gpt-4o-mini", o200k, 765},
		{"openai:gpt-4.1", o200k, 765},
		{"gpt-5", o200k, 765},
		{"gpt-5-nano-2026-01-01", o200k, 765},
		{"o1", o200k, 765},
		{"o3-mini", o200k, 765},
		{"azure:o4-mini", o200k, 765},
		{"ollama:gpt-oss:20b", o200k, 0},
		{"openrouter:openai/gpt-4o", o200k, 765},
		{"ft:gpt-4o:acme::x", o200k, 765},
		{"openai:ft:gpt-4o:acme", o200k, 765},
		{"gpt-4", cl100k, 765},
		{"GPT-4-turbo", cl100k, 765},
		{"gpt-3.5-turbo", cl100k, 0},
		{"text-embedding-3-small", cl100k, 0},
		{"claude:claude-sonnet-4", estimate, 1400},
		{"bedrock:us.anthropic.claude-3-5-haiku-v1:0", estimate, 1400},
		{"gemini:gemini-2.5-pro", estimate, 1032},
		{"ollama:llama3", estimate, 0},
		{"o100", estimate, 0},
		{"gpt-40", estimate, 0},
		{"openai:", estimate, 0},
		{"", estimate, 0},
	} {
		c := token.For(tt.model)
		if got := c.Text(text); got != tt.want {
			t.Errorf("%s: %d tokens, want %d", tt.model, got, tt.want)
		}
		if got := c.Message(image, true); got != tt.image {
			t.Errorf("%s: %d tokens for an image, want %d", tt.model, got, tt.image)
		}
	}
}

// TestKnownCounts has the counts that the makers of the encodings publish.
func TestKnownCounts(t *testing.T) {
	for _, tt := range []struct {
		model, text string
		want        int
	}{
		{"gpt-4", "tiktoken is great!", 6},
		{"gpt-4", "antidisestablishmentarianism", 6},
		{"gpt-4", "2 + 2 = 4", 7},
		{"gpt-4", "お誕生日おめでとう", 9},
		{"gpt-4o", "antidisestablishmentarianism", 6},
		{"gpt-4o", "2 + 2 = 4", 7},
		{"gpt-4o", "お誕生日おめでとう", 8},
		{"gpt-4o", "", 0},
	} {
		if got := token.For(tt.model).Text(tt.text); got != tt.want {
			t.Errorf("%s: %q has %d tokens, want %d", tt.model, tt.text, got, tt.want)
		}
	}
}

// TestLibrary compares the counts with those of a library that has the vocabularies in another form.
func TestLibrary(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var texts []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text[:min(len(text), 10_000)]))
	}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "E", "é", "ſ", "ß", "日", "한", "ש", "\u0301", "7", "٣", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "'s", "'LL", "/", "!", "{}", "😀", "\xff", "ing", "the"}
	for range 2000 {
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(strings.Repeat(parts[r.IntN(len(parts))], 1+r.IntN(3)*r.IntN(3)))
		}
		texts = append(texts, b.String())
	}
	texts = append(texts, strings.Repeat("abcdefghijklmnop", 500))
	for model, library := range map[string]*codec.Codec{"gpt-4": codec.NewCl100kBase(), "gpt-4o": codec.NewO200kBase()} {
		for _, text := range texts {
			want, err := library.Count(text)
			if got := token.For(model).Text(text); err != nil || got != want {
				t.Errorf("%s: %d tokens, want %d (%v) in %.200q", model, got, want, err, text)
			}
		}
	}
}

func TestEstimate(t *testing.T) {
	c := token.Estimate()
	text := func(role chat.Role, text string) chat.Message { return chat.Text(role, text) }
	for _, tt := range []struct {
		name string
		list []chat.Message
		want int
	}{
		{"nothing", nil, 0},
		{"question", []chat.Message{text(chat.User, "12345678")}, 2 + 5},
		{"answered", []chat.Message{text(chat.User, "12345678"), text(chat.Assistant, "1234")}, 2 + 1 + 5},
		{"wide", []chat.Message{text(chat.Assistant, "äöüß")}, 2},
		{"thoughts_at_the_end", []chat.Message{text(chat.Assistant, "<think>1</think>1234")}, 5},
		{"thoughts_before", []chat.Message{text(chat.Assistant, "<think>1</think>1234"), text(chat.User, "1234")}, 1 + 1 + 10},
		{"reasoning", []chat.Message{{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "12345678"}, {Type: chat.TextPart, Text: "1234"}}}}, 1},
		{"calls", []chat.Message{{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{Name: "1234", Arguments: "12345678"}}}, {Role: chat.ToolRole, Parts: []chat.Part{{Type: chat.TextPart, Text: "1234"}}}}, 1 + 2 + 1 + 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := c.Messages(tt.list); got != tt.want {
				t.Errorf("%d tokens, want %d", got, tt.want)
			}
		})
	}
	if got := c.Tools([]chat.Tool{{Name: "1234", Description: "12345678", Parameters: []byte(`{"type":1}`)}}); got != 1+2+3 {
		t.Errorf("%d tokens for a tool", got)
	}
}

func TestFit(t *testing.T) {
	list := []chat.Message{chat.Text(chat.User, strings.Repeat("1234", 93))} // 98 with framing
	for limit, fits := range map[int]bool{0: true, 101: true, 100: false, 50: false} {
		err := token.Estimate().Fit(list, limit)
		if (err == nil) != fits || err != nil && fault.CodeOf(err) != fault.Limit {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestHostileTexts(t *testing.T) {
	c := token.For("gpt-4o")
	for _, text := range []string{strings.Repeat("a", 200_000), strings.Repeat(" ", 200_000), strings.Repeat("日", 50_000), "\xff\xfe", "<|endoftext|>"} {
		if got := c.Text(text); got < 1 || got > 2*len(text) {
			t.Errorf("%d tokens for %d bytes", got, len(text))
		}
	}
	if got := c.Text("<|endoftext|>"); got == 1 {
		t.Error("what a user types counts as a control token")
	}
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100)
	for _, model := range []string{"gpt-4o", "other"} {
		c := token.For(model)
		c.Text(text) // loads the encoding
		b.Run(model, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.Text(text)
			}
		})
	}
}
