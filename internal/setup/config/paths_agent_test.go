package config_test

import (
	"testing"

	"loki/internal/setup/config"
)

func TestAgentVariable(t *testing.T) {
	for name, want := range map[string]string{"code-reviewer": "CODE_REVIEWER", "Fancy Name": "FANCY_NAME", "a_b": "A_B"} {
		if got := config.AgentVariable(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
