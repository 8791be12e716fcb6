package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// requestTimeout bounds each request for a token.
const requestTimeout = 30 * time.Second

// withClient returns ctx with the HTTP client for the library's requests.
func (p Provider) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.client())
}

// client returns the HTTP client for token requests.
func (p Provider) client() *http.Client {
	base := cmp.Or(p.HTTP, http.DefaultClient)
	client := *base
	client.Timeout = requestTimeout
	client.Transport = &transport{provider: p, base: base.Transport}
	// A redirect would send the secrets to another server. The response then has no
	// token.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// transport adds the special settings of a provider to token requests.
type transport struct {
	provider Provider
	base     http.RoundTripper // nil means the default one
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for _, h := range t.provider.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if err := t.provider.form(req); err != nil {
			return nil, err
		}
	}
	if t.base == nil {
		return http.DefaultTransport.RoundTrip(req)
	}
	return t.base.RoundTrip(req)
}

// form completes the form in a request.
func (p Provider) form(req *http.Request) error {
	if p.Resource == "" && p.Body != JSON {
		return nil
	}
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(data))
	if err != nil {
		return err
	}
	if p.Resource != "" {
		form.Set("resource", p.Resource)
	}
	body := []byte(form.Encode())
	if p.Body == JSON {
		members := make(map[string]string, len(form))
		for name := range form {
			members[name] = form.Get(name)
		}
		if body, err = json.Marshal(members); err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
