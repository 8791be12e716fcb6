package config

import (
	"fmt"
	"slices"
	"strings"

	"loki/internal/yamldoc"
)

// fromPlatform makes the configuration of someone who has no file: the variable
// LOKI_PROVIDER, else LOKI_PLATFORM, names a provider and perhaps a model of it.
// Keys come from the environment as for any client.
func (c *Config) fromPlatform(env Env) (warnings []*yamldoc.Problem) {
	variable := "LOKI_PROVIDER"
	if env.Get(variable) == "" {
		variable = "LOKI_PLATFORM"
	}
	id := strings.TrimSpace(env.Get(variable))
	name, _, _ := strings.Cut(id, ":")
	if name == "" {
		return nil
	}
	client := &Client{Type: name, Name: name, Extra: defaultExtra()}
	if p, ok := platform(name); ok {
		client.Type, client.Name = TypeOpenAICompatible, p.Name
	} else if !slices.Contains(ClientTypes(), name) {
		return []*yamldoc.Problem{{
			Msg:  fmt.Sprintf("%s is ignored: unknown provider %q", variable, name),
			Hint: unknownProviderHint(name),
		}}
	}
	c.Model = id
	c.Clients = []*Client{client}
	return nil
}

func unknownProviderHint(name string) string {
	known := ClientTypes()
	for _, p := range platforms {
		known = append(known, p.Name)
	}
	hint := "the providers are " + strings.Join(known, ", ")
	if near := yamldoc.Nearest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near) + hint
	}
	return hint
}
