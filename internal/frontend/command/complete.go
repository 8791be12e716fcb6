package command

import (
	"context"
	"slices"
	"strings"
)

// Completion is what can replace the end of a text.
type Completion struct {
	From       int // offset in bytes from which a candidate replaces the text
	Candidates []Candidate
}

// Candidate is a text to which what the user has typed can be completed.
type Candidate struct {
	Value, Description string
	Space              bool // a blank follows it
}

// Complete returns what the text before the cursor can be completed to, the best first: commands, their
// arguments, and in a prompt the path behind an @.
func (c *Console) Complete(ctx context.Context, text string) Completion {
	line := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, separators), fence), separators)
	start := len(text) - len(line)
	if !strings.HasPrefix(line, ".") {
		return completeMention(text)
	}
	words := strings.Split(line, " ")
	if len(words) > 1 {
		if found, ok := c.completeArgument(ctx, line, words); ok {
			found.From += start
			return found
		}
	}
	return Completion{From: start, Candidates: c.completeCommand(words)}
}

// completeCommand returns the commands that are offered in the state of the conversation and begin with the same
// two characters as the line, ranked by its first two words.
func (c *Console) completeCommand(words []string) (found []Candidate) {
	typed := strings.Join(words[:min(len(words), 2)], " ")
	if len(words) > 2 {
		return nil
	}
	mode, family := c.mode(), typed[:min(len(typed), 2)]
	for _, row := range c.commands {
		if strings.HasPrefix(row.Name, family) && row.Offered(mode) {
			found = append(found, Candidate{Value: row.Name, Description: row.Help, Space: true})
		}
	}
	return rankCandidates(typed, found)
}

// completeArgument returns what the last word of a command's arguments can be; ok is false if that is not known.
func (c *Console) completeArgument(ctx context.Context, line string, words []string) (found Completion, ok bool) {
	row, behind := c.rowOf(words)
	if row.complete == nil {
		return found, false
	}
	last := words[len(words)-1]
	candidates := c.candidates(ctx, row, words[behind:])
	if len(candidates) == 0 {
		return found, false
	}
	// What all have in common up to a comma or a slash stays, and is not shown again and again.
	cut := strings.LastIndexAny(last, ",/") + 1
	if slices.ContainsFunc(candidates, func(c Candidate) bool { return !strings.HasPrefix(c.Value, last[:cut]) }) {
		cut = 0
	}
	shown := slices.Clone(candidates)
	for i := range shown {
		shown[i].Value = shown[i].Value[cut:]
	}
	found = Completion{From: len(line) - len(last) + cut, Candidates: rankCandidates(last[cut:], shown)}
	return found, len(found.Candidates) > 0
}

// candidates returns what a row of the table has for the last of the words behind it. While a word is typed they are
// listed once.
func (c *Console) candidates(ctx context.Context, row Command, words []string) []Candidate {
	last := words[len(words)-1]
	cut := strings.LastIndexAny(last, ",/") + 1
	key := row.Name + " " + strings.Join(words[:len(words)-1], " ") + " " + last[:min(cut+1, len(last))] // names may depend on how they begin
	list, ok := c.known[key]
	if !ok {
		if c.known == nil {
			c.known = make(map[string][]Candidate)
		}
		list = row.complete(c, ctx, words)
		c.known[key] = list
	}
	return list
}

// rowOf returns the command whose name the first words of a line are, and the number of these. At least one more
// word follows them.
func (c *Console) rowOf(words []string) (row Command, behind int) {
	for n := min(2, len(words)-1); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		if i := slices.IndexFunc(c.commands, func(r Command) bool { return r.Name == name }); i >= 0 {
			return c.commands[i], n
		}
	}
	return Command{}, 0
}
