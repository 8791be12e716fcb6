package display

import (
	"fmt"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/conversation/session/search"
)

// FoundText returns what a search found: each session or run with the part of it that was found, in which mark marks
// what was looked for, and the command that opens it.
func FoundText(list []search.Hit, mark func(string) string) string {
	var b strings.Builder
	for i, f := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		name := f.Name
		if f.Kind == search.FoundRun {
			name = f.ID
		}
		what := f.Kind
		if f.Agent != "" {
			what += " of " + f.Agent
		}
		fmt.Fprintf(&b, "%s  %s, %s ago, %s\n", Line(name), Line(what), Age(time.Since(f.At)), text.Count(f.Hits, "hit"))
		role := "name"
		if f.Role != "" {
			role = f.Role
		}
		fmt.Fprintf(&b, "  %s: %s\n", role, markSnippet(f.Snippet, mark))
		fmt.Fprintf(&b, "  %s\n", Line(f.Open))
	}
	return b.String()
}

// markSnippet returns a snippet with its marks.
func markSnippet(s search.Snippet, mark func(string) string) string {
	var b strings.Builder
	runes := []rune(s.Text)
	at := 0
	for _, m := range s.Marks {
		b.WriteString(string(runes[at:m[0]]) + mark(string(runes[m[0]:m[1]])))
		at = m[1]
	}
	return b.String() + string(runes[at:])
}

// Bold marks what was found where color is shown, and Brackets elsewhere.
func Bold(s string) string { return "\x1b[1;33m" + s + "\x1b[0m" }

// Brackets marks what was found.
func Brackets(s string) string { return "[" + s + "]" }

// FoundNote returns what to say about the number of results, "" for nothing.
func FoundNote(shown int, of search.Found) string {
	switch {
	case of.Total == 0:
		return "nothing was found"
	case of.More:
		return fmt.Sprintf("%d of at least %d: the words are common, so only the newest texts were ranked", shown, of.Total)
	case of.Total > shown:
		return fmt.Sprintf("the best %d of %d; more words find less", shown, of.Total)
	}
	return ""
}
