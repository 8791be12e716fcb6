package setup

import (
	"strings"

	"loki/internal/llm/provider/local"
)

// Ways puts the servers that run on this machine in front of the ways to a model that
// hint lists, one a line below its first.
func Ways(hint string, servers []local.Server) string {
	first, rest, _ := strings.Cut(hint, "\n")
	lines := []string{first}
	for _, s := range servers {
		model := "llama3.2"
		if len(s.Models) > 0 {
			model = s.Models[0]
		}
		command := "export LOKI_PLATFORM=" + string(s.Kind) + ":" + model
		if !usualPlace(s) {
			command += " " + strings.ToUpper(string(s.Kind)) + "_API_BASE=" + s.BaseURL
		}
		lines = append(lines, "  "+kindNames[s.Kind]+", running here:  "+command)
		if len(s.Models) == 0 && s.Kind == local.Ollama {
			lines = append(lines, "    after:  ollama pull llama3.2")
		}
	}
	if rest != "" {
		lines = append(lines, rest)
	}
	return strings.Join(lines, "\n")
}
