package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"loki/internal/provider"
)

// Patch changes a finished request. The zero value changes nothing.
type Patch struct {
	URL string // replaces the URL unless it is empty

	// Body is a JSON merge patch (RFC 7396): objects, which are map[string]any,
	// merge, nil deletes a member, anything else replaces.
	Body map[string]any

	// Headers sets the fields with a string and removes those with nil; other
	// values are ignored. Names are case-insensitive.
	Headers map[string]any
}

// PatchRule is a patch for the models whose names match.
type PatchRule struct {
	Pattern string // regular expression for the whole name, as the configuration has it
	Patch   Patch
}

// Patches are the rules of a client by API, in the order in which they are tried.
// The first rule whose pattern matches applies, and no other. Patterns that are no
// regular expression are skipped.
type Patches map[API][]PatchRule

// Apply changes req as the client's patches p and the call c say. It is for
// requests that are signed and must not change afterwards: their context has no
// call. It reads the body and puts another in its place.
func Apply(req *http.Request, p Patches, c Call) error {
	return apply(req, c.Patch, compile(p, "", slog.New(slog.DiscardHandler)).find(c.API, c.Model))
}

// apply changes req by patches, one after the other.
func apply(req *http.Request, patches ...Patch) error {
	for _, p := range patches {
		if err := p.applyURL(req); err != nil {
			return err
		}
		if err := p.applyBody(req); err != nil {
			return err
		}
		p.applyHeaders(req)
	}
	return nil
}

func (p Patch) applyURL(req *http.Request) error {
	if p.URL == "" {
		return nil
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return &provider.Error{Kind: provider.Invalid, Msg: "the URL of the request, set by a patch, is malformed"}
	}
	req.URL, req.Host = u, ""
	return nil
}

func (p Patch) applyBody(req *http.Request) error {
	if len(p.Body) == 0 {
		return nil
	}
	body, err := readBody(req)
	if err != nil {
		return err
	}
	merged, err := mergeBody(body, p.Body)
	if err != nil {
		return &provider.Error{Kind: provider.Invalid, Msg: "patching the body of the request", Err: err}
	}
	setBody(req, merged)
	return nil
}

func (p Patch) applyHeaders(req *http.Request) {
	h := req.Header
	for name, value := range p.Headers {
		host := strings.EqualFold(name, "Host")
		switch v := value.(type) {
		case string:
			if host {
				req.Host = v
				continue
			}
			h.Set(name, v)
		case nil:
			if host {
				req.Host = ""
			}
			h.Del(name)
			if strings.EqualFold(name, "User-Agent") {
				h.Set(name, "") // otherwise net/http adds its own
			}
		}
	}
}

// readBody reads the body of req, which is then used up.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer req.Body.Close()
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "reading the body of the request", Err: err}
	}
	return data, nil
}

func setBody(req *http.Request, data []byte) {
	req.ContentLength = int64(len(data))
	if len(data) == 0 {
		req.Body, req.GetBody = http.NoBody, func() (io.ReadCloser, error) { return http.NoBody, nil }
		return
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	req.Body, _ = req.GetBody()
}

// compiled finds the patch of a model.
type compiled map[API][]compiledRule

type compiledRule struct {
	pattern *regexp.Regexp
	patch   Patch
}

// compile leaves out what does not compile and says so to log.
func compile(p Patches, client string, log *slog.Logger) compiled {
	c := make(compiled, len(p))
	for api, rules := range p {
		for _, r := range rules {
			_, err := regexp.Compile(r.Pattern) // as the user wrote it, for the message
			if err != nil {
				log.Warn("patch rule skipped", "client", client, "api", string(api), "pattern", r.Pattern, "error", err)
				continue
			}
			c[api] = append(c[api], compiledRule{regexp.MustCompile("^(?:" + r.Pattern + ")$"), r.Patch})
		}
	}
	return c
}

// compileOnce compiles with the first request, since most starts of the program
// send none.
func compileOnce(p Patches, client string, log *slog.Logger) func() compiled {
	return sync.OnceValue(func() compiled { return compile(p, client, log) })
}

func (c compiled) find(api API, model string) Patch {
	for _, r := range c[api] {
		if r.pattern.MatchString(model) {
			return r.patch
		}
	}
	return Patch{}
}

// mergeBody returns the JSON object body with patch merged into it.
func mergeBody(body []byte, patch map[string]any) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a float64 would change large integers
	var target any
	if err := dec.Decode(&target); err != nil {
		return nil, err
	}
	return Encode(merge(target, patch))
}

// merge is the algorithm of RFC 7396, section 2. It may change target, and never
// patch.
func merge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = make(map[string]any)
	}
	for name, value := range members {
		if value == nil {
			delete(object, name)
			continue
		}
		object[name] = merge(object[name], value)
	}
	return object
}

// Encode is [json.Marshal] without the escapes for HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
