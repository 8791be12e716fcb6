package config

import (
	"cmp"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/tool/mcp/oauth"
)

// authOAuth is the value of auth that asks for OAuth.
const authOAuth = "oauth"

// OAuth returns where the tokens of c come from, as far as it is configured, nil if c does
// not say auth: oauth. References to secrets are replaced. The environment variables
// <CLIENT NAME>_OAUTH_CLIENT_ID and _OAUTH_CLIENT_SECRET beat the file.
func (c *Client) OAuth(env Env) (*oauth.Provider, error) {
	if auth := c.fields["auth"]; auth == nil || *auth != authOAuth {
		return nil, nil
	}
	p := oauth.Provider{}
	if c.oauth != nil {
		p = *c.oauth
	}
	sources := make(map[string]string) // of the texts that are not from the file
	p.ClientID, sources["client_id"] = c.oauthFromEnv(env, "client_id", p.ClientID)
	p.ClientSecret, sources["client_secret"] = c.oauthSecret(env)
	p, err := p.Expand(func(key, text string) (string, error) {
		return c.expand(cmp.Or(sources[key], "oauth."+key), text)
	})
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// Login returns where the tokens of c come from, nil if it uses a key.
func (c *Client) Login(env Env) (*oauth.Provider, error) {
	set, err := c.OAuth(env)
	if err != nil || set == nil {
		return nil, err
	}
	defaults, ok := oauth.Defaults(c.Type)
	switch c.Type {
	case TypeOpenAI, TypeOpenAICompatible, TypeAzureOpenAI: // all of it is configured
		defaults, ok = oauth.Provider{Flow: oauth.Browser}, true
	}
	if !ok {
		return nil, fault.New(fault.Config, "client %s: clients of type %s do not log in with OAuth", c.Name, c.Type).
			WithHint("leave out auth: oauth, and configure the key or the credentials of the client")
	}
	p := set.Or(defaults)
	p.Name = c.Name
	return &p, p.Check()
}

// oauthSecret returns the client secret as it is written, and what it comes from.
func (c *Client) oauthSecret(env Env) (text, source string) {
	if c.oauth != nil {
		text = c.oauth.ClientSecret
	}
	return c.oauthFromEnv(env, "client_secret", text)
}

func (c *Client) oauthFromEnv(env Env, name, configured string) (text, source string) {
	if variable, text := env.first(Variables(c.Name + "_oauth_" + name)); text != "" {
		return text, fromVariable + variable
	}
	return configured, "oauth." + name
}

// readOAuth reads the mapping oauth of a client; a nil m is none.
func (c *Client) readOAuth(m *yamldoc.Map) {
	if m == nil {
		return
	}
	p := oauth.Read(m)
	if auth := c.fields["auth"]; auth == nil || *auth != authOAuth {
		p := m.Node().Warnf("has no effect on a client without auth: %s", authOAuth)
		p.Hint = "add auth: " + authOAuth
	}
	c.oauth = &p
}
