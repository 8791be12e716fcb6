package rank

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"

	texts "loki/internal/base/text"
)

// plainTokens finds tokens as Tokenizer does, without its shortcuts.
func plainTokens(text string) []string {
	var list []string
	add := func(word string) {
		if word = fold(word); word == "" || stopWords()[word] {
			return
		}
		list = append(list, Stem(word))
	}
	for segments := words.FromString(texts.WithoutInvisible(strings.ToValidUTF8(text, " "))); segments.Next(); {
		word := segments.Value()
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			continue
		}
		add(word)
		if parts := split(word); len(parts) > 1 {
			for _, part := range parts {
				add(part)
			}
		}
	}
	return list
}

// TestMemory counts the bytes that are allocated: what they are for must not depend on what is behind
// a word, and long words are not kept.
func TestMemory(t *testing.T) {
	z := new(Tokenizer)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 2 {
		z.Append(nil, strings.Repeat("Поиск по базе знаний ", 5000)+strings.Repeat("x", 1000))
	}
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 20 {
		t.Errorf("%d MB for 380 KB of text", mb)
	}
	if len(z.seen) != 4 {
		t.Errorf("%d words are remembered", len(z.seen))
	}
}

func FuzzShortcuts(f *testing.F) {
	for _, seed := range []string{
		"a.b c:d 1.2,3;4 x_y __ a'b 'q' don’t 5th fmt.Println(\"x\") é.a a.é a\u0301 a \u0301b", "HTTPServer2.5e\xff", "a:'b", "a.\u200db", "1.\u0301\t2", "__\u0301",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unspaced, r) }) {
			return
		}
		if got, want := Tokens(text), plainTokens(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}
