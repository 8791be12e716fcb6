package trust

import (
	"loki/internal/agent"
	"loki/internal/base/fault"
	"loki/internal/base/text"
)

// Refusal is the error of something that an agent which is not trusted cannot have.
func Refusal(of agent.Agent, what string) error {
	return fault.New(fault.Config, "%s: agent %s in %s is not trusted", what, of.Name, of.Dir).
		WithHint("%s", Hint(of.Dir))
}

// Hint says how a directory becomes trusted.
func Hint(dir string) string {
	return "review it, then trust it: loki --trust " + text.Word(dir) + "; or, if you write it yourself, name its directory in trusted_dirs of config.yaml"
}
