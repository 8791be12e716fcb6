package builtin

import (
	"unicode"
	"unicode/utf8"
)

// wordChunks cuts text behind the white space that follows each word, so that the
// pieces put together are the text.
func wordChunks(text string) []string {
	var out []string
	start := 0
	inSpace := false
	for i, r := range text {
		if space := unicode.IsSpace(r); space != inSpace {
			if inSpace && i > start {
				out = append(out, text[start:i])
				start = i
			}
			inSpace = space
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// sizedChunks cuts text into pieces of n characters, the last one shorter.
func sizedChunks(text string, n int) []string {
	var out []string
	for text != "" {
		end := 0
		for range n {
			if end == len(text) {
				break
			}
			_, w := utf8.DecodeRuneInString(text[end:])
			end += w
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}
