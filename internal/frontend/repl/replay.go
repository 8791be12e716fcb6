package repl

import (
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

const (
	replayTurns = 2  // of a session that is entered
	replayLines = 20 // of each text in them
)

// replay shows the last turns of the session, if it has just been entered.
func (r *repl) replay() {
	s, st := r.conv.Session(), r.conv.State().Session
	unnamed := st != nil && st.Unnamed
	if unnamed && r.replayed {
		s = nil // the user has seen all of it
	}
	r.replayed = true
	if s == r.entered {
		return
	}
	r.entered = s
	if s == nil || s.Empty() {
		return
	}
	messages := s.Messages()
	from, turns := len(messages), 0
	for i := len(messages) - 1; i >= 0 && turns < replayTurns; i-- {
		if messages[i].Question() {
			from, turns = i, turns+1
		}
	}
	if turns == 0 {
		return
	}
	what := "session " + text.Printable(s.Name())
	if unnamed {
		what = "continuing"
	}
	r.print(r.dim(fmt.Sprintf("▸ %s: %s, the last of them:", what, text.Count(len(messages), "message"))) + "\n\n")
	for _, m := range messages[from:] {
		shown := m.Text()
		if m.Role == chat.Assistant {
			shown = chat.WithoutThinking(shown)
		}
		if shown = firstLines(strings.TrimSpace(shown), replayLines); shown == "" {
			continue
		}
		switch {
		case m.Question():
			shown = "> " + strings.ReplaceAll(text.Printable(shown), "\n", "\n. ")
			for line := range strings.Lines(shown + "\n") {
				r.print(r.dim(strings.TrimSuffix(line, "\n")) + "\n")
			}
		case m.Role == chat.Assistant:
			r.printMarkdown(shown)
			r.print("\n")
		}
	}
}

// firstLines returns the first n lines of a text, and how many are left out.
func firstLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	if len(lines) <= n {
		return s
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n[... %d more lines]", len(lines)-n)
}
