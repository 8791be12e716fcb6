package builtin

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// wordChunks cuts text behind the white space that follows each word, so that the
// pieces put together are the text.
func wordChunks(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		inSpace := false
		for i, r := range text {
			if space := unicode.IsSpace(r); space != inSpace {
				if inSpace && i > start {
					if !yield(text[start:i]) {
						return
					}
					start = i
				}
				inSpace = space
			}
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// sizedChunks cuts text into pieces of n characters, the last one shorter.
func sizedChunks(text string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := text; rest != ""; {
			end := 0
			for range n {
				if end == len(rest) {
					break
				}
				_, w := utf8.DecodeRuneInString(rest[end:])
				end += w
			}
			if !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}
