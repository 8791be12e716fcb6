package openai

import (
	"strings"
	"testing"

	"loki/internal/llm/chat"
)

func split(pieces ...string) (reasoning, text string) {
	var t thinkSplitter
	var r, x strings.Builder
	take := func(reasoning, text string) {
		r.WriteString(reasoning)
		x.WriteString(text)
	}
	for _, p := range pieces {
		take(t.add(p))
	}
	take(t.flush())
	return r.String(), x.String()
}

func TestThinkSplitter(t *testing.T) {
	for _, tt := range []struct{ name, in, reasoning, text string }{
		{"empty", "", "", ""},
		{"no_block", "Hello <think>x</think>", "", "Hello <think>x</think>"},
		{"block", "<think>a</think>b", "a", "b"},
		{"space_around", " \n<think>\n a b \n</think>\n\n b ", "a b", "b "},
		{"space_only", " \n\t", "", " \n\t"},
		{"space_before_text", "\n\nHi", "", "\n\nHi"},
		{"empty_block", "<think>\n\n</think>\n\nHi", "", "Hi"},
		{"second_block_is_text", "<think>a</think><think>b</think>", "a", "<think>b</think>"},
		{"open_at_the_end", "<think>a\n", "a", ""},
		{"cut_at_the_end", "<think>a </thin", "a </thin", ""},
		{"almost_a_block", "<thinking>a</thinking>", "", "<thinking>a</thinking>"},
		{"start_of_a_tag", "<thi", "", "<thi"},
		{"less_than", "< 5", "", "< 5"},
		{"almost_the_end", "<think>a </ think> </think>b", "a </ think>", "b"},
		{"nothing_after", "<think>a</think>\n", "a", ""},
		{"much_space_before", strings.Repeat(" ", maxSpace+1) + "<think>a", "", strings.Repeat(" ", maxSpace+1) + "<think>a"},
		{"much_space_inside", "<think>a" + strings.Repeat("\n", maxSpace+1) + "</think>b", "a\n", "b"},
		{"multi_byte", "<think>ä€</think>ü", "ä€", "ü"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, pieces := range map[string][]string{"whole": {tt.in}, "bytes": strings.Split(tt.in, "")} {
				if r, x := split(pieces...); r != tt.reasoning || x != tt.text {
					t.Errorf("%s: reasoning %q, text %q; want %q, %q", name, r, x, tt.reasoning, tt.text)
				}
			}
		})
	}
}

// FuzzThinkSplitter checks that the cut between two pieces does not matter, and
// that text without a block comes through unchanged.
func FuzzThinkSplitter(f *testing.F) {
	f.Add("<think>a</think>b", 3)
	f.Add(" <think> a </think> b", 12)
	f.Add("plain", 2)
	f.Fuzz(func(t *testing.T, in string, cut int) {
		if cut < 0 || cut > len(in) {
			return
		}
		r1, x1 := split(in)
		r2, x2 := split(in[:cut], in[cut:])
		if r1 != r2 || x1 != x2 {
			t.Errorf("whole: %q, %q; cut: %q, %q", r1, x1, r2, x2)
		}
		if !strings.HasPrefix(strings.TrimLeft(in, space), thinkOpen) && (x1 != in || r1 != "") {
			t.Errorf("reasoning %q, text %q of %q", r1, x1, in)
		}
		if r1 != "" && chat.WithoutThinking(in) != x1 && strings.Contains(in, thinkClose) {
			t.Errorf("text %q, without thinking %q", x1, chat.WithoutThinking(in))
		}
	})
}
