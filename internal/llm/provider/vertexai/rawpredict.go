package vertexai

import (
	"net/http"
	"net/url"

	"loki/internal/llm/provider"
)

// target is where a request goes.
type target struct {
	model  string
	method string
}

// targetKey is the context key of a [target].
type targetKey struct{}

// rawPredict sends the requests of a client of the OpenAI format to the method of a
// model, before they are patched.
type rawPredict struct {
	next http.RoundTripper
	base string // that the name of the model is appended to
}

// RoundTrip implements [http.RoundTripper].
func (r *rawPredict) RoundTrip(req *http.Request) (*http.Response, error) {
	t := req.Context().Value(targetKey{}).(target) // all requests are made by mistral.Chat
	u, err := url.Parse(r.base + url.PathEscape(t.model) + ":" + t.method)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the name of model " + t.model + " cannot be part of a URL", Err: err}
	}
	u.RawQuery = req.URL.RawQuery
	req = req.Clone(req.Context())
	req.URL, req.Host = u, ""
	return r.next.RoundTrip(req)
}
