package yamldoc

import (
	"fmt"
	"slices"
	"strings"
)

// Choice reads one of a few words. Another word is reported, with the valid ones.
func Choice[T ~string](m *Map, key string, dst *T, words ...T) bool {
	var word string
	if !m.Text(key, &word) {
		return false
	}
	if !slices.Contains(words, T(word)) {
		valid := make([]string, len(words))
		for i, w := range words {
			valid[i] = string(w)
		}
		m.Get(key).Errorf("unknown value %q", word).Hint = OneOf(word, valid)
		return false
	}
	*dst = T(word)
	return true
}

// OneOf returns a hint that lists what a word may be, and which of them was probably meant.
func OneOf(word string, words []string) string {
	list := "valid are " + strings.Join(words, ", ")
	if near := Nearest(word, words); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, list)
	}
	return list
}
