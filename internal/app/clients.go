package app

import (
	"cmp"
	"context"
	"net/http"

	"loki/internal/config"
	"loki/internal/fault"
	"loki/internal/oauth"
	"loki/internal/provider"
	"loki/internal/provider/anthropic"
	"loki/internal/provider/bedrock"
	"loki/internal/provider/builtin"
	"loki/internal/provider/client"
	"loki/internal/provider/cohere"
	"loki/internal/provider/gemini"
	"loki/internal/provider/openai"
	"loki/internal/provider/vertexai"
	"loki/internal/provider/wire"
)

// newProvider returns the provider of a configured client. The error is of code Config.
func (a *App) newProvider(c *config.Client) (provider.Chat, error) {
	if c.Type == config.TypeBuiltin {
		script, err := c.Field(a.Env, "script")
		if err != nil {
			return nil, err
		}
		return builtin.New(builtin.Options{ScriptFile: cmp.Or(a.Env.Get("LOKI_SCRIPT_FILE"), script)}), nil
	}
	s := settings{app: a, client: c}
	p, err := s.provider()
	if err = cmp.Or(s.err, err); err != nil {
		if fault.CodeOf(err) != fault.Failure {
			return nil, err
		}
		return nil, fault.Wrap(fault.Config, err, "")
	}
	return p, nil
}

// settings reads the settings of a client, up to the first that cannot be read.
type settings struct {
	app    *App
	client *config.Client
	err    error
}

// provider makes the provider of the client's type.
func (s *settings) provider() (provider.Chat, error) {
	c, model := s.client, s.app.wireModel(s.client)
	token, tokenHeaders := s.token() // an error for types that cannot log in
	switch c.Type {
	case config.TypeOpenAI, config.TypeOpenAICompatible, config.TypeAzureOpenAI:
		o := client.Options{
			Name: c.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), API: s.field("api"),
			Token: token, HTTP: s.http(), Model: model,
		}
		switch c.Type {
		case config.TypeOpenAI:
			if org := s.field("organization_id"); org != "" {
				o.Headers = map[string]string{"OpenAI-Organization": org}
			}
			return made(openai.New(o))
		case config.TypeAzureOpenAI:
			return made(openai.NewAzure(o))
		}
		return made(openai.NewCompatible(o))
	case config.TypeClaude:
		o := client.Options{Name: c.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), HTTP: s.http(), Model: model}
		o.Token, o.Headers = token, tokenHeaders
		return made(anthropic.New(o))
	case config.TypeGemini:
		o := client.Options{Name: c.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), HTTP: s.http(), Model: model}
		o.Token = token
		return made(gemini.New(o))
	case config.TypeVertexAI:
		return made(vertexai.New(vertexai.Options{
			Options: client.Options{Name: c.Name, APIBase: s.field("api_base"), HTTP: s.http(), Model: model},
			Project: s.field("project_id"), Location: s.field("location"), ADCFile: s.field("adc_file"), TokenHTTP: s.tokenHTTP(),
		}))
	case config.TypeBedrock:
		return made(bedrock.New(bedrock.Options{
			Options: client.Options{Name: c.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), HTTP: s.plainHTTP(), Model: model},
			Region:  s.field("region"), AccessKeyID: s.lazy("access_key_id"), SecretAccessKey: s.lazy("secret_access_key"), SessionToken: s.lazy("session_token"),
			Proxy: s.proxy(), Patches: s.patches(), Getenv: s.app.Env.Get,
		}))
	case config.TypeCohere:
		return made(cohere.New(client.Options{Name: c.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), HTTP: s.http(), Model: model}))
	}
	return nil, fault.New(fault.Config, "client %s: there is no type %s", c.Name, c.Type)
}

// made turns a provider of its own type into a [provider.Chat].
func made[T provider.Chat](p T, err error) (provider.Chat, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (s *settings) field(name string) string {
	text, err := s.client.Field(s.app.Env, name)
	s.err = cmp.Or(s.err, err)
	return text
}

// lazy returns a setting when it is needed: it may be a secret.
func (s *settings) lazy(name string) func() (string, error) {
	return func() (string, error) { return s.client.Field(s.app.Env, name) }
}

// token returns the source of OAuth tokens, nil where a key is used, and the headers that
// go with the tokens.
func (s *settings) token() (func(context.Context) (string, error), map[string]string) {
	p, err := s.app.oauthProvider(s.client)
	s.err = cmp.Or(s.err, err)
	if err != nil || p == nil {
		return nil, nil
	}
	p.HTTP = s.oauthHTTP()
	source := &oauth.Source{
		Name: s.client.Name, Store: oauth.StoreIn(s.app.Paths.OAuthDir, s.client.Name), Seen: s.app.keepTokens(s.client.Name),
		Provider: func() (oauth.Provider, error) { return *p, nil },
	}
	var headers map[string]string
	if s.client.Type == config.TypeClaude {
		headers = map[string]string{"anthropic-beta": oauth.ClaudeBeta}
	}
	return source.Token, headers
}

// http returns a connection that applies the client's patches.
func (s *settings) http() *http.Client { return s.connection(wire.Options{Patches: s.patches()}) }

// plainHTTP returns a connection that changes nothing.
func (s *settings) plainHTTP() *http.Client { return s.connection(wire.Options{}) }

// tokenHTTP returns a connection that asks for access tokens.
func (s *settings) tokenHTTP() *http.Client { return s.connection(wire.Options{Credentials: true}) }

// oauthHTTP returns a connection for OAuth, where "not yet" is a response of status 400.
func (s *settings) oauthHTTP() *http.Client {
	return s.connection(wire.Options{Credentials: true, AnyStatus: true})
}

// proxy returns the proxy of the client, nil if it has none of its own.
func (s *settings) proxy() *string {
	proxy, err := s.client.Proxy()
	s.err = cmp.Or(s.err, err)
	return proxy
}

// connection returns a connection as the client's settings and o say.
func (s *settings) connection(o wire.Options) *http.Client {
	extra := s.client.Extra
	o.Proxy = s.proxy()
	o.Client, o.UserAgent = s.client.Name, s.app.Config.UserAgentHeader(Version)
	o.Log = s.app.log.Load()
	o.ConnectTimeout, o.ReadTimeout = extra.ConnectTimeout, extra.ReadTimeout
	client, err := wire.NewClient(o)
	s.err = cmp.Or(s.err, err)
	return client
}

func (s *settings) patches() wire.Patches {
	patches := make(wire.Patches)
	for _, api := range wire.APIs() {
		rules, err := s.client.PatchRules(s.app.Env, api)
		s.err = cmp.Or(s.err, err)
		patches[api] = rules
	}
	return patches
}
