package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/web"
	"loki/internal/llm/catalog"
	"loki/internal/llm/engine/governor"
	"loki/internal/llm/provider/local"
	"loki/internal/llm/provider/wire"
	"loki/internal/tool/mcp/oauth"
)

// Client is one entry of clients. It keeps its fields to itself, because some are
// secret: printing or logging a Client shows its name and type only.
type Client struct {
	Type   string // one of [ClientTypes]
	Name   string // the type, unless configured
	Models []catalog.Model
	Patch  wire.Patches

	// Fallbacks are the ids of the models to try, in order, when one of this client
	// fails that names none itself.
	Fallbacks []string

	Extra  Extra
	Limits governor.Limits
	Where  string // "file:line:column", empty if no file configures it

	// The values are pointers so that not even %#v of an enclosing struct can
	// print them.
	fields map[string]*string
	oauth  *oauth.Provider // nil if not configured

	secrets Secrets // nil without a vault
	file    string  // where places are
	places  []place // of references to secrets
}

// newClient returns a client that takes all its settings from the environment.
func newClient(typ, name string) *Client {
	return &Client{
		Type: typ, Name: name, fields: make(map[string]*string), Limits: governor.DefaultLimits(),
		Extra: Extra{ConnectTimeout: DefaultConnectTimeout, Retries: DefaultRetries, PromptCache: true},
	}
}

// Extra tunes the connection of a client.
type Extra struct {
	Proxy          *string       // a URL; "-" or empty for none; nil for what the environment says
	ConnectTimeout time.Duration // [DefaultConnectTimeout] unless configured
	ReadTimeout    time.Duration // longest silence of the server; 0 leaves it to the provider
	Retries        int           // of calls that fail in passing; [DefaultRetries] unless configured
	PromptCache    bool          // mark prompts for the provider's cache; true unless configured
}

// DefaultConnectTimeout is how long a connection may take to be made.
const DefaultConnectTimeout = 10 * time.Second

// DefaultRetries is how often a call with a transient failure is repeated.
const DefaultRetries = 2

// field is a setting of clients that is a plain text.
type field struct {
	name string
	env  bool // <CLIENT NAME>_<FIELD> beats the file
}

var clientFields = []field{
	{"api_base", true},
	{"api_key", true},
	{"api", false},
	{"organization_id", true},
	{"auth", false},
	{"project_id", true},
	{"location", true},
	{"adc_file", true},
	{"access_key_id", true},
	{"secret_access_key", true},
	{"region", true},
	{"session_token", true},
	{"script", true},
}

// Field returns the setting of c that is called name, empty if there is none. The
// environment variable <CLIENT NAME>_<FIELD> beats the file unless it is empty; it
// is in capitals, and characters that shells do not allow in names may be written
// as underscores. Of api_base a slash at the end is dropped, and where it is unset
// it is the one the platform or the openai type is known by; so is the address that a
// platform had before. Platforms that answer over another API than most have it as api.
//
// References to secrets are replaced, see [Config.UseSecrets]. One that cannot be is
// an error that says where it is and what to do. Field panics if no client has a field
// of that name.
func (c *Client) Field(env Env, name string) (string, error) {
	text, source := c.raw(env, fieldOf(name))
	text, err := c.expand(source, text)
	if err != nil {
		return "", err
	}
	switch name {
	case "api_base":
		if err := checkBase(c.Name, source, text); err != nil {
			return "", err
		}
		text = strings.TrimRight(text, "/")
		if text == c.platform().Former {
			text = "" // where the platform has no former address this changes nothing
		}
		text = cmp.Or(text, strings.TrimRight(c.defaultAPIBase(), "/"))
	case "api":
		if base, _ := c.Field(env, "api_base"); text == "" && base == c.defaultAPIBase() {
			text = c.platform().API
		}
	}
	return text, nil
}

// fieldOf returns the field called name.
func fieldOf(name string) field {
	i := slices.IndexFunc(clientFields, func(f field) bool { return f.name == name })
	if i < 0 {
		panic("config: clients have no field " + name)
	}
	return clientFields[i]
}

// raw returns the value of f and what it comes from.
func (c *Client) raw(env Env, f field) (text, source string) {
	if f.env {
		if variable, text := env.first(Variables(c.Name + "_" + f.name)); text != "" {
			return text, fromVariable + variable
		}
	}
	if text := c.fields[f.name]; text != nil {
		return *text, f.name
	}
	makers := c.makersBase()
	if f.name == "api_base" && makers.Variable != "" {
		if text := makers.of(env.Get(makers.Variable)); text != "" {
			return text, fromVariable + makers.Variable
		}
	}
	if variable := c.makersVariable(f.name); variable != "" {
		base, source := c.raw(env, fieldOf("api_base"))
		mine := base == "" || source == fromVariable+makers.Variable
		if text := env.Get(variable); text != "" && mine { // the key is not for another server
			return text, fromVariable + variable
		}
	}
	if host := env.Get(ollamaHost); host != "" && f.name == "api_base" && c.platform().Name == "ollama" {
		return local.OllamaURL(host) + "/v1", fromVariable + ollamaHost
	}
	return "", f.name
}

// fromVariable precedes the name of the variable in the source of a field.
const fromVariable = "environment variable "

// checkBase checks an address that comes from a variable. Others are checked by the provider, which names api_base.
func checkBase(client, source, base string) error {
	variable, ok := strings.CutPrefix(source, fromVariable)
	if !ok || strings.Contains(base, "{") {
		return nil
	}
	if u, err := url.Parse(strings.TrimSpace(base)); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return fault.New(fault.Config, "%s%s is not an http or https URL, and client %q takes its address from it", fromVariable, variable, client).
		WithHint("export %s=https://HOST/..., or unset %s", variable, variable)
}

// makersBase returns where the programs of a provider look for the address of its API. It counts for the client that has the
// provider's name.
func (c *Client) makersBase() Base {
	if t, ok := clientType(c.Type); ok && c.Name == c.Type {
		return t.Base
	}
	return c.platform().Base
}

// ollamaHost is the variable by which the programs of Ollama find their server.
const ollamaHost = "OLLAMA_HOST"

// makersVariable returns the variable in which the programs of a provider look for a key,
// "" if there is none but that of the client's name.
func (c *Client) makersVariable(field string) string {
	if field != "api_key" {
		return ""
	}
	t, _ := clientType(c.Type)
	return t.KeyVariable
}

// KeyVariable returns the variable that holds the key of c.
func (c *Client) KeyVariable() string { return shellVariable(c.Name + "_api_key") }

// Account identifies the account that calls of a model belong to, and the model, as far as the configuration tells. It is a
// hash, of which no secret can be known.
func (c *Client) Account(env Env, model string) string {
	h := sha256.New()
	base, _ := c.Field(env, "api_base")
	fmt.Fprintf(h, "%q %q %q", c.Type, base, model)
	for _, f := range clientFields {
		if text, _ := c.raw(env, f); f.env && f.name != "api_base" {
			fmt.Fprintf(h, " %q", text)
		}
	}
	if c.oauth != nil {
		fmt.Fprintf(h, " %q", c.Name)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Source says for messages where the value of a field comes from: a variable, or a place
// in config.yaml, and there perhaps a secret of the vault.
func (c *Client) Source(env Env, name string) string {
	text, source := c.raw(env, fieldOf(name))
	if source != name {
		return source
	}
	where := name + " of client " + c.Name
	if c.Where != "" {
		where += " at " + c.Where
	}
	if _, rest, ok := strings.Cut(text, "{{"); ok {
		if secret, _, ok := strings.Cut(rest, "}}"); ok {
			where = "the secret " + strings.TrimSpace(secret) + " of the vault, which " + where + " names"
		}
	}
	return where
}

// Variables returns the environment variables that name means: name in capitals
// and, if a shell cannot set that, the same with underscores.
func Variables(name string) []string {
	exact := strings.ToUpper(name)
	plain := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, exact)
	if plain == exact {
		return []string{exact}
	}
	return []string{exact, plain}
}

// shellVariable returns the one of [Variables] that every shell can set.
func shellVariable(name string) string {
	names := Variables(name)
	return names[len(names)-1]
}

func (c *Client) defaultAPIBase() string {
	t, _ := clientType(c.Type)
	return cmp.Or(t.APIBase, c.platform().APIBase)
}

// Local reports whether the models of c run on the user's own machine, where they cost nothing: c is one of the platforms
// that do, or an OpenAI-compatible server at a loopback address.
func (c *Client) Local() bool {
	if base := c.fields["api_base"]; base != nil && c.Type == TypeOpenAICompatible {
		if u, err := url.Parse(*base); err == nil && web.Loopback(u.Hostname()) {
			return true
		}
	}
	return c.platform().Local
}

// platform returns the platform that c is a client of, the zero Platform if it is of none.
func (c *Client) platform() Platform {
	if c.Type != TypeOpenAICompatible {
		return Platform{}
	}
	p, _ := platform(c.Name)
	return p
}

// String returns the name and the type of c.
func (c *Client) String() string { return fmt.Sprintf("client %q of type %s", c.Name, c.Type) }

// GoString is [Client.String].
func (c *Client) GoString() string { return c.String() }

// LogValue is [Client.String].
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is [Client.String], and keeps JSON to it.
func (c *Client) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// InVault is how KeyPlace begins for a secret of the vault.
const InVault = "in the vault, "

// KeyPlace describes where the configuration file has the key of c, without showing it: the secret of the vault, "in the file", or
// empty if it has none.
func (c *Client) KeyPlace() string {
	key := c.fields["api_key"]
	if key == nil || *key == "" {
		return ""
	}
	if at, ok := nextPlaceholder(*key); ok && at.start == 0 && at.end == len(*key) {
		return InVault + at.name
	}
	return "in the file"
}
