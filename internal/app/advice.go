package app

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/config"
	"loki/internal/provider"
	"loki/internal/provider/wire"
)

// advice returns what a user can do about a failure of a client's provider, "" for nothing
// that the message does not say. unknown is what to do if the provider has no such model.
func (a *App) advice(client *config.Client, unknown string, err error) string {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return ""
	}
	switch {
	case wire.Refused(err):
		return a.startServer(client)
	case wire.UnknownHost(err):
		return "check " + client.Source(a.Env, "api_base") + ", the connection to the network, and extra.proxy if you need a proxy"
	case e.Kind == provider.Authentication && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden):
		return a.checkKey(client)
	case e.Status == http.StatusNotFound && withoutVersion(e.URL):
		base, _ := client.Field(a.Env, "api_base") // it has been read before
		return "api_base may lack the version: try " + strings.TrimRight(base, "/") + "/v1 in " + client.Source(a.Env, "api_base")
	case unknownModel(e):
		return unknown
	}
	return ""
}

// startServer is for a client where no server listens.
func (a *App) startServer(client *config.Client) string {
	start := map[string]string{
		"ollama": "start it with: ollama serve", "llamacpp": "start it with: llama-server -m MODEL.gguf", "lmstudio": "start it with: lms server start",
	}[client.Name]
	if start == "" {
		start = "start it"
	}
	return "is the server running? " + start + ", or correct " + client.Source(a.Env, "api_base")
}

// checkKey says where the credentials come from that were refused.
func (a *App) checkKey(client *config.Client) string {
	if p, err := a.oauthProvider(client); err == nil && p != nil {
		return "log in again: loki --authenticate " + client.Name
	}
	switch client.Type {
	case config.TypeVertexAI:
		return "check the credentials of Google Cloud: gcloud auth application-default login"
	case config.TypeBedrock:
		if key, err := client.Field(a.Env, "api_key"); err == nil && key == "" {
			return "the keys come from " + client.Source(a.Env, "access_key_id") + " or from AWS's own variables and files"
		}
	}
	if key, err := client.Field(a.Env, "api_key"); err != nil || key == "" {
		return "no key was sent: set " + client.KeyVariable() + ", or api_key of client " + client.Name
	}
	return "the key comes from " + client.Source(a.Env, "api_key")
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
