package skill

import (
	"fmt"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/chat"
)

// preamble says what a model does with the list.
const preamble = "Skills tell how certain tasks are done. If a task fits one of them, load it with the tool skill before you begin, and follow it.\n\n<skills>\n"

// sentence is the first sentence of a description.
var sentence = text.Regexp(`^.*?[.!?](?:\s|$)`)

// List returns the skills as models read of them, in at most so many tokens: names and descriptions, as long as they fit first
// sentences of them, and else names, of which the last ones may be left out. Empty for no skills.
func List(skills []Skill, tokens int) string {
	if len(skills) == 0 || tokens == 0 {
		return ""
	}
	lines := make([]string, len(skills))
	left := tokens*4 - cost(preamble+"</skills>") // in quarters of a token, as chat.EstimateTokens counts
	more, note := 0, "- and %d more skills\n"
	for i, s := range skills {
		line := "- " + s.Name + "\n"
		if left < cost(line)+cost(fmt.Sprintf(note, len(skills))) {
			more++
			continue
		}
		lines[i] = line
		left -= cost(line)
	}
	for _, part := range []func(string) string{
		func(d string) string { return strings.TrimSpace(sentence().FindString(d)) },
		func(d string) string { return d },
	} {
		for i, s := range skills {
			said := part(strings.ReplaceAll(strings.Join(strings.Fields(s.Description), " "), "</skills", `<\/skills`))
			line := "- " + s.Name + ": " + said + "\n"
			if growth := cost(line) - cost(lines[i]); lines[i] != "" && said != "" && growth <= left-cost(note)-8 {
				lines[i] = line
				left -= growth
			}
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf(note, more))
	}
	return preamble + strings.Join(lines, "") + "</skills>"
}

// cost returns the tokens of a text, in quarters.
func cost(text string) int { return chat.EstimateTokens(strings.Repeat(text, 4)) }
