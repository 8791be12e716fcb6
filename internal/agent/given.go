package agent

import (
	"loki/internal/base/fault"
	"loki/internal/base/process/environ"
	"loki/internal/setup/config"
	"loki/internal/tool"
	"loki/internal/workflow/run"
)

// CheckGiven returns what is wrong with the variables that a client gives to an agent: a [*run.ConsentError] if they
// consent to all calls of tools, and a [*fault.Error] if they refer to the vault. Only the configuration and the
// command line do, whose values are filled in, also when a run or a session is resumed later.
func CheckGiven(variables map[string]string) error {
	if name, ok := ConsentVariable(variables); ok {
		return &run.ConsentError{Variable: name}
	}
	for name, value := range variables {
		if config.HasSecretPlaceholder(value) {
			return fault.New(fault.Usage, "variable %s: the value refers to a secret of the vault, which only the server's configuration may do", name).
				WithHint("leave out the reference; an agent gets a secret by the default of its variable")
		}
	}
	return nil
}

// ConsentVariable returns the name of a variable that consents to all calls of tools.
func ConsentVariable(variables map[string]string) (name string, ok bool) {
	for name, value := range variables {
		if environ.AgentVariable(name) == environ.AgentVariable("auto_confirm") && tool.Consents(value) {
			return name, true
		}
	}
	return "", false
}
