package config

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/value/yamldoc"
)

// otherVariables are the variables that the program reads beside those of the settings.
var otherVariables = []string{
	"LOKI_CONFIG_DIR", "LOKI_CONFIG_FILE", "LOKI_ENV_FILE", "LOKI_ROLES_DIR", "LOKI_MACROS_DIR", "LOKI_SESSIONS_DIR", "LOKI_RAGS_DIR",
	"LOKI_FUNCTIONS_DIR", "LOKI_STATE_DIR", "LOKI_LOG_FILE", "LOKI_LOG_PATH", "LOKI_LOG_LEVEL", "LOKI_LOG_FILTER", "LOKI_MESSAGES_FILE",
	"LOKI_PROVIDER", "LOKI_PLATFORM", "LOKI_SHELL", "LOKI_FETCH_ALLOW", "LOKI_EMBEDDINGS_RETRY_LIMIT", "LOKI_NOTICE",
}

// misspellings returns a warning for each variable that is not read any more, or whose name is nearly
// that of one that is. Other variables that begin with LOKI_ may belong to another program.
func misspellings(env Env) []string {
	known := slices.Clone(otherVariables)
	for _, k := range keys {
		if k.env {
			known = append(known, k.variable())
		}
	}
	var warnings []string
	for _, v := range env.vars {
		if !strings.HasPrefix(v.Name, "LOKI_") || strings.HasPrefix(v.Name, "LOKI_PATCH_") || slices.Contains(known, v.Name) {
			continue
		}
		if slices.Contains(withdrawn, strings.ToLower(strings.TrimPrefix(v.Name, "LOKI_"))) {
			warnings = append(warnings, fmt.Sprintf("environment variable %s has no effect anymore", v.Name))
			continue
		}
		// A name that only begins like a known one is another name, but for a slip at its end.
		near := yamldoc.Nearest(v.Name, known)
		begins := strings.HasPrefix(near, v.Name) || strings.HasPrefix(v.Name, near)
		if slip := max(len(near)-len(v.Name), len(v.Name)-len(near)) <= 2; near != "" && (!begins || slip) {
			warnings = append(warnings, fmt.Sprintf("environment variable %s has no effect; did you mean %s?", v.Name, near))
		}
	}
	return warnings
}
