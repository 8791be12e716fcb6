package repl

import (
	"context"
	"path/filepath"
	"strings"

	"loki/internal/frontend/repl/line"
	"loki/internal/llm/event/redact"
	"loki/internal/setup/config"
)

// historyFile has the earlier submissions, in the state directory.
const historyFile = "repl_history"

// openHistory returns the earlier submissions: of this talk, or of all if the setting repl_history says so.
func (r *repl) openHistory(ctx context.Context) (*line.History, error) {
	if !r.app.Config.REPLHistory {
		return new(line.History), nil
	}
	h, err := line.OpenHistory(ctx, filepath.Join(r.app.Paths.StateDir, historyFile))
	if err != nil {
		return new(line.History), err
	}
	h.Mask = func(entry string) string { return redact.MaskAddresses(r.app.Hide(entry)) }
	return h, nil
}

// vi reports whether the keys are those of vi.
func (r *repl) vi() bool { return r.app.Config.Keybindings == config.Vi }

// completer returns what completes the end of a text.
func (r *repl) completer(ctx context.Context) func(text string) line.Completion {
	return func(text string) line.Completion {
		found := r.console.Complete(ctx, text)
		c := line.Completion{From: found.From, Candidates: make([]line.Candidate, len(found.Candidates))}
		for i, candidate := range found.Candidates {
			c.Candidates[i] = line.Candidate(candidate)
		}
		return c
	}
}

// highlighter returns what colors the input: the longest name of a command in it, where it occurs first.
func (r *repl) highlighter() func(text string) string {
	var names []string
	for _, row := range r.console.Commands() {
		names = append(names, row.Name)
	}
	return func(text string) string {
		if !r.highlight || !strings.Contains(text, ".") {
			return text
		}
		longest := ""
		for _, name := range names {
			if len(name) > len(longest) && strings.Contains(text, name) {
				longest = name
			}
		}
		before, after, found := strings.Cut(text, longest)
		if !found || longest == "" {
			return text
		}
		return before + r.paint("32", longest) + after
	}
}
