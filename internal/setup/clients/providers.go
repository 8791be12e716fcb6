package clients

import (
	"cmp"
	"context"
	"net/http"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/bedrock"
	"loki/internal/llm/provider/builtin"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/cohere"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/vertexai"
	"loki/internal/llm/provider/wire"
	"loki/internal/setup/config"
	"loki/internal/tool/mcp/oauth"
)

// makers returns the constructors of providers by the type of client. A new provider is a
// line here and in [config.ClientTypes].
func makers() map[string]func(*settings) (provider.Chat, error) {
	return map[string]func(*settings) (provider.Chat, error){
		config.TypeOpenAI:           asClient(openai.New),
		config.TypeOpenAICompatible: asClient(openai.NewCompatible),
		config.TypeAzureOpenAI:      asClient(openai.NewAzure),
		config.TypeClaude:           asClient(anthropic.New),
		config.TypeGemini:           asClient(gemini.New),
		config.TypeCohere:           asClient(cohere.New),
		config.TypeVertexAI:         (*settings).vertexAI,
		config.TypeBedrock:          (*settings).bedrock,
		config.TypeBuiltin:          (*settings).builtin,
	}
}

// newProvider returns the provider of a configured client. The error has the code Config.
func (s *Service) newProvider(c *config.Client) (provider.Chat, error) {
	create, ok := makers()[c.Type]
	if !ok {
		return nil, fault.New(fault.Config, "client %s: there is no type %s", c.Name, c.Type)
	}
	of := settings{all: s, client: c}
	p, err := create(&of)
	if err = cmp.Or(of.err, err); err != nil {
		if fault.CodeOf(err) != fault.Failure {
			return nil, err
		}
		return nil, fault.Wrap(fault.Config, err, "")
	}
	return p, nil
}

// asClient makes a provider with the options of any client.
func asClient[T provider.Chat](create func(client.Options) (T, error)) func(*settings) (provider.Chat, error) {
	return func(s *settings) (provider.Chat, error) { return asChat(create(s.options())) }
}

// asChat turns a provider of its own type into a [provider.Chat].
func asChat[T provider.Chat](p T, err error) (provider.Chat, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// settings reads the settings of a client, up to the first that cannot be read.
type settings struct {
	all    *Service
	client *config.Client
	err    error
}

// options returns the options of any client.
func (s *settings) options() client.Options {
	o := client.Options{
		Name: s.client.Name, APIBase: s.field("api_base"), APIKey: s.lazy("api_key"), API: s.field("api"),
		HTTP: s.http(), Model: s.all.wireModel(s.client),
	}
	o.Token, o.Headers = s.token() // an error for types that cannot log in
	if s.client.Type == config.TypeOpenAI {
		if org := s.field("organization_id"); org != "" {
			o.Headers = map[string]string{"OpenAI-Organization": org}
		}
	}
	return o
}

func (s *settings) vertexAI() (provider.Chat, error) {
	return asChat(vertexai.New(vertexai.Options{
		Options: s.options(), Project: s.field("project_id"), Location: s.field("location"),
		ADCFile: s.field("adc_file"), TokenHTTP: s.tokenHTTP(),
	}))
}

func (s *settings) bedrock() (provider.Chat, error) {
	o := bedrock.Options{
		Options: s.options(), Region: s.field("region"),
		AccessKeyID: s.lazy("access_key_id"), SecretAccessKey: s.lazy("secret_access_key"), SessionToken: s.lazy("session_token"),
		Proxy: s.proxy(), Patches: s.patches(), Getenv: s.all.Env.Get,
	}
	o.HTTP = s.plainHTTP() // what is signed must not be changed
	return asChat(bedrock.New(o))
}

func (s *settings) builtin() (provider.Chat, error) {
	script := s.field("script")
	return builtin.New(builtin.Options{ScriptFile: cmp.Or(s.all.Env.Get("LOKI_SCRIPT_FILE"), script)}), nil
}

func (s *settings) field(name string) string {
	text, err := s.client.Field(s.all.Env, name)
	s.err = cmp.Or(s.err, err)
	return text
}

// lazy returns a setting when it is needed: it may be a secret.
func (s *settings) lazy(name string) func() (string, error) {
	return func() (string, error) { return s.client.Field(s.all.Env, name) }
}

// token returns the source of OAuth tokens, nil where a key is used, and the headers that
// go with the tokens.
func (s *settings) token() (func(context.Context) (string, error), map[string]string) {
	p, err := s.client.Login(s.all.Env)
	s.err = cmp.Or(s.err, err)
	if err != nil || p == nil {
		return nil, nil
	}
	p.HTTP = s.oauthHTTP()
	source := &oauth.Source{
		Name: s.client.Name, Store: oauth.StoreIn(s.all.Paths.OAuthDir, s.client.Name), Seen: s.all.Seen(s.client.Name),
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
	o.Client, o.UserAgent = s.client.Name, s.all.Config.UserAgentHeader(s.all.Version)
	o.Log = s.all.Log()
	o.ConnectTimeout, o.ReadTimeout = extra.ConnectTimeout, extra.ReadTimeout
	client, err := wire.NewClient(o)
	s.err = cmp.Or(s.err, err)
	return client
}

func (s *settings) patches() wire.Patches {
	patches := make(wire.Patches)
	for _, api := range wire.APIs() {
		rules, err := s.client.PatchRules(s.all.Env, api)
		s.err = cmp.Or(s.err, err)
		patches[api] = rules
	}
	return patches
}
