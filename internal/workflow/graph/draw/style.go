package draw

import (
	_ "embed"
	"strings"
)

//go:embed graph.css
var rules string

// colors are the custom properties that the rules name, for light and for dark surroundings.
var colors = [...]struct{ name, light, dark string }{
	{"paper", "#ffffff", "#0f1420"},
	{"card", "#ffffff", "#182030"},
	{"ink", "#18202e", "#e8edf6"},
	{"soft", "#5a6577", "#9aa7bd"},
	{"line", "#8592a6", "#64728a"},
	{"llm", "#7440d8", "#b594ff"},
	{"llm-card", "#f5f0ff", "#231c3d"},
	{"agent", "#1d5fd0", "#7fb0ff"},
	{"agent-card", "#edf4ff", "#16263f"},
	{"script", "#4b586b", "#aab6ca"},
	{"script-card", "#f3f5f8", "#1c2431"},
	{"approval", "#a34a00", "#ffb066"},
	{"approval-card", "#fff4e8", "#33220f"},
	{"input", "#0b6e78", "#5fd0da"},
	{"input-card", "#e8f8fa", "#0d2b30"},
	{"rag", "#22713a", "#76d693"},
	{"rag-card", "#ecf8ef", "#122c1b"},
	{"map", "#a82474", "#ff8ccb"},
	{"map-card", "#fdeff7", "#361629"},
	{"tool", "#7a5c00", "#e3c04f"},
	{"tool-card", "#fbf6e2", "#2c2710"},
	{"wait", "#5b5f97", "#a9aee8"},
	{"wait-card", "#f1f1fb", "#20223c"},
	{"graph", "#3d6b1f", "#a5d46a"},
	{"graph-card", "#f2f8ec", "#1d2a12"},
	{"end", "#18202e", "#e8edf6"},
	{"end-card", "#eef1f5", "#222b3a"},
	{"done", "#1a7f43", "#3fb96c"},
	{"running", "#1565d8", "#5aa2ff"},
	{"failed", "#c62828", "#ff6b6b"},
	{"waiting", "#b25e00", "#ffab40"},
	{"skipped", "#7b8698", "#6c788d"},
}

// Style returns the style sheet for pages with pictures that do not stand alone. Its colors are custom
// properties, such as --graph-paper, and those of the color-scheme that the page has.
func Style() string {
	var b strings.Builder
	b.WriteString(".graph {\n")
	for _, c := range colors {
		b.WriteString("  --graph-" + c.name + ": light-dark(" + c.light + ", " + c.dark + ");\n")
	}
	b.WriteString("}\n")
	b.WriteString(rules)
	return b.String()
}

// standaloneStyle returns the rules with their colors filled in, since not every viewer of
// pictures knows custom properties.
func standaloneStyle() string {
	var light, dark []string
	for _, c := range colors {
		name := "var(--graph-" + c.name + ")"
		light, dark = append(light, name, c.light), append(dark, name, c.dark)
	}
	var b strings.Builder
	b.WriteString(strings.NewReplacer(light...).Replace(rules))
	b.WriteString("@media (prefers-color-scheme: dark) {\n")
	for line := range strings.Lines(rules) {
		if strings.Contains(line, "var(--graph-") { // each rule is a line
			b.WriteString("  " + strings.NewReplacer(dark...).Replace(line))
		}
	}
	b.WriteString("}\n")
	return b.String()
}
