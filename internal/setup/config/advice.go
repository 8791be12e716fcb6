package config

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// Advice returns what a user can do about a failure of the provider of c, "" for nothing
// that the message does not say. unknown is what to do if the provider has no such model.
func (c *Client) Advice(env Env, unknown string, err error) string {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return ""
	}
	setting := settingFor(c.Name, e)
	switch {
	case setting != "":
		return setting
	case wire.Refused(err):
		return c.startServer(env)
	case wire.UnknownHost(err):
		return "check " + c.Source(env, "api_base") + ", the connection to the network, and extra.proxy if you need a proxy"
	case e.Kind == provider.Authentication && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		return c.checkKey(env)
	case e.Kind == provider.Authentication && e.Status == 0 && e.Err == nil && c.Type != TypeBedrock:
		return "export " + c.KeyVariable() + "=..., or let loki --setup ask for the key and encrypt it"
	case e.Status == http.StatusNotFound && withoutVersion(e.URL):
		base, _ := c.Field(env, "api_base") // it has been read before
		return "api_base may lack the version: try " + strings.TrimRight(base, "/") + "/v1 in " + c.Source(env, "api_base")
	case unknownModel(e):
		return c.elsewhere(env) + unknown
	}
	return ""
}

// elsewhere says why a model was asked that the server does not have: the environment names a server of another maker.
func (c *Client) elsewhere(env Env) string {
	variable := c.makersBase().Variable
	if c.Where != "" || variable == "" || env.Get(variable) == "" {
		return ""
	}
	return "the model is one of " + c.Type + ", but " + variable + " names another server: take one of its models, as in -m " + c.Name + ":NAME; "
}

// settingFor returns the setting for a model that takes less than others, "" for another failure. Servers word such
// refusals in many ways.
func settingFor(client string, e *provider.Error) string {
	words := strings.ToLower(e.Msg)
	says := func(any ...string) bool {
		return slices.ContainsFunc(any, func(w string) bool { return strings.Contains(words, w) })
	}
	set := func(setting string) string {
		return "set " + setting + " for the model, under models of client " + client + " in config.yaml"
	}
	switch {
	case e.Kind != provider.Invalid || !says("not support", "n't support", "unsupported", "support tool", "support image", "not enabled", "not allowed", "only supported", "only support", "--enable-auto-tool-choice"):
		return ""
	case says("stream"):
		return set("no_stream: true") + ", or ask with -S"
	case says("system", "developer") && says("instruction", "message", "role", "prompt"):
		return set("no_system_message: true")
	case says("image", "vision", "picture", "multimodal"):
		return "the model takes no images: leave them out, or take a model that does with -m"
	case says("tool", "function call"):
		return set("supports_function_calling: false") + ", or take another model with -m"
	}
	return ""
}

// startServer is for a client where no server listens.
func (c *Client) startServer(env Env) string {
	start := map[string]string{
		"ollama": "start it with: ollama serve", "llamacpp": "start it with: llama-server -m MODEL.gguf", "lmstudio": "start it with: lms server start",
	}[c.Name]
	if start == "" {
		start = "start it"
	}
	return "is the server running? " + start + ", or correct " + c.Source(env, "api_base")
}

// checkKey says where the credentials come from that were refused.
func (c *Client) checkKey(env Env) string {
	if p, err := c.Login(env); err == nil && p != nil {
		return "log in again: loki --authenticate " + c.Name
	}
	switch c.Type {
	case TypeVertexAI:
		return "check the credentials of Google Cloud: gcloud auth application-default login"
	case TypeBedrock:
		if key, err := c.Field(env, "api_key"); err == nil && key == "" {
			return "the keys come from " + c.Source(env, "access_key_id") + " or from AWS's own variables and files"
		}
	}
	key, err := c.Field(env, "api_key")
	switch {
	case err != nil || key == "":
		return "no key was sent: set " + c.KeyVariable() + ", or api_key of client " + c.Name
	case strings.Trim(key, `"'`) != key:
		return "the key has quotation marks, which are sent, too; it comes from " + c.Source(env, "api_key")
	}
	return "the key comes from " + c.Source(env, "api_key")
}

// withoutVersion reports whether the address of a request has nothing in front of the path
// of an API: /chat/completions, where most servers have /v1/chat/completions.
func withoutVersion(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	switch u.Path {
	case "/chat/completions", "/responses", "/embeddings", "/messages":
		return true
	}
	return false
}

// unknownModel reports whether e may be that a provider has no such model: most say
// 404, some 400 or 410 and something about the model.
func unknownModel(e *provider.Error) bool {
	return e.Kind == provider.Invalid && (e.Status == http.StatusNotFound || strings.Contains(strings.ToLower(e.Msg), "model"))
}
