package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/llm/catalog"
	"loki/internal/llm/event/redact"
	"loki/internal/llm/provider/wire"
)

// Proxy returns the proxy of c's connections, as [Extra] has it, with references to secrets
// replaced.
func (c *Client) Proxy() (*string, error) {
	if c.Extra.Proxy == nil {
		return nil, nil
	}
	text, err := c.expand("extra.proxy", *c.Extra.Proxy)
	if err != nil {
		return nil, err
	}
	return &text, nil
}

// ModelPatch returns the patch of a model of c with references to secrets replaced; nil
// stays nil.
func (c *Client) ModelPatch(m catalog.Model) (*wire.Patch, error) {
	p, err := expandPatch(m.Patch, c.secrets)
	return p, c.secretError("the patch of model "+m.Name, "models", err)
}

// Credentials returns the secrets of c that are written out, in the file or the
// environment, so that logs can mask them. Those in the vault are left out.
// Each has the name of the environment variable that it may come from.
func (c *Client) Credentials(env Env) []Var {
	var found []Var
	add := func(name, text string) {
		if text != "" && !HasSecretPlaceholder(text) {
			found = append(found, Var{shellVariable(c.Name + "_" + name), text})
		}
	}
	for _, name := range []string{"api_key", "secret_access_key", "session_token"} {
		text, _ := c.raw(env, fieldOf(name))
		add(name, text)
	}
	text, _ := c.oauthSecret(env)
	add("oauth_client_secret", text)
	for _, p := range c.allPatches(env) {
		for _, h := range p.Headers {
			if h.Value != nil && redact.SecretField(h.Name) {
				add(strings.ReplaceAll(h.Name, "-", "_"), redact.Credential(*h.Value))
			}
		}
	}
	return found
}

// allPatches returns the patches of c, its models and the variables that [Client.PatchRules]
// reads. What cannot be read is left out.
func (c *Client) allPatches(env Env) []*wire.Patch {
	var all []*wire.Patch
	for _, p := range c.patches() {
		all = append(all, p)
	}
	for _, api := range wire.APIs() {
		for _, variable := range c.patchVariables(api) {
			if text := env.Get(variable); text != "" {
				rules, _ := parsePatchRules(variable, text)
				for _, r := range rules {
					all = append(all, &r.Patch)
				}
			}
		}
	}
	return all
}

// KeyVariables returns the environment variables that secrets of c are taken from.
func (c *Client) KeyVariables() []string {
	var names []string
	for _, field := range []string{"api_key", "secret_access_key", "session_token", "oauth_client_secret"} {
		names = append(names, Variables(c.Name+"_"+field)...)
		if variable := c.makersVariable(field); variable != "" {
			names = append(names, variable)
		}
	}
	return names
}

// CheckSecrets returns an error with code Config if anything that c would send refers to a
// secret and there is no vault, see [Config.UseSecrets]. Fields that the environment
// sets are taken from there. No secret is looked up.
func (c *Client) CheckSecrets(env Env) error {
	if c.secrets != nil {
		return nil
	}
	for _, f := range clientFields {
		text, source := c.raw(env, f)
		if _, err := c.expand(source, text); err != nil {
			return err
		}
	}
	if _, err := c.Proxy(); err != nil {
		return err
	}
	for source, patch := range c.patches() {
		if _, err := expandPatch(patch, nil); err != nil {
			return c.secretError(source, source, err)
		}
	}
	return nil
}

// expand replaces the references of a value to secrets. Its source is a field of c, or
// whatever describes it in messages.
func (c *Client) expand(source, text string) (string, error) {
	text, err := expandValue(text, c.secrets)
	return text, c.secretError(source, source, err)
}

// secretError returns the error for the user if err is a [*miss] of what source describes,
// which is below key in the file.
func (c *Client) secretError(source, key string, err error) error {
	miss, ok := errors.AsType[*miss](err)
	if !ok {
		return err
	}
	at := placeOf(c.file, c.places, key, miss.name)
	if at == "" {
		at = c.Where
	}
	shown := miss.userError(describe(fmt.Sprintf("client %q", c.Name), at) + source)
	field := slices.ContainsFunc(clientFields, func(f field) bool { return f.env && f.name == source })
	if !field || fault.CodeOf(shown) != fault.Config {
		return shown
	}
	export := fmt.Sprintf("export %s=..., which beats the file", shellVariable(c.Name+"_"+source))
	switch {
	case errors.Is(miss.err, errNoVault):
		return shown.WithHint("%s", export)
	case fault.CodeOf(miss.err) == fault.NotFound:
		return shown.WithHint("%s, or %s", shown.Hint, export)
	}
	return shown
}

// describe returns what begins a message about something in a file: its name, if it has
// one, and where it is, as far as that is known.
func describe(name, at string) string {
	switch {
	case at == "" && name == "":
		return ""
	case at == "":
		return name + ": "
	case name == "":
		return at + ": "
	}
	return name + " (" + at + "): "
}
