package skill

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/agent/workspace"
	"loki/internal/base/text/pattern"
	"loki/internal/base/value/yamldoc"
)

// The choices beside names and patterns of names.
const (
	All  = "all"
	None = "none"
)

// Choose returns the skills that a setting names: All, None, or names and patterns with commas between them. Untrusted skills are among
// them. Unknown are the names without a skill.
func Choose(skills []Skill, setting string) (chosen []Skill, unknown []string) {
	words := strings.FieldsFunc(setting, func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains(words, None) {
		return nil, nil
	}
	matched := make([]bool, len(words))
	for _, s := range skills {
		wanted := false
		for i, word := range words {
			if word == All || pattern.Text(word, s.Name) {
				wanted, matched[i] = true, true
			}
		}
		if wanted {
			chosen = append(chosen, s)
		}
	}
	for i, word := range words {
		if !matched[i] && word != All && !strings.ContainsAny(word, "*?[{") {
			unknown = append(unknown, word)
		}
	}
	return chosen, unknown
}

// NotFound says that there is no skill of a name, and which name is near.
func NotFound(name string, skills []Skill) string {
	var names []string
	for _, s := range skills {
		names = append(names, s.Name)
	}
	if near := yamldoc.Nearest(name, names); near != "" {
		return fmt.Sprintf("there is no skill %q; did you mean %s?", name, near)
	}
	return fmt.Sprintf("there is no skill %q", name)
}

// Usable returns the skills that count.
func Usable(skills []Skill) []Skill {
	return slices.DeleteFunc(slices.Clone(skills), func(s Skill) bool { return s.State != workspace.Used })
}
