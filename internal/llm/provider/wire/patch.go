package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/value"
	"loki/internal/llm/provider"
)

// Patch is a change to a finished request, for what a server wants differently. The zero
// value changes nothing. It is immutable.
type Patch struct {
	URL string // replaces the URL unless it is empty

	// Body is a JSON merge patch (RFC 7396): objects merge, null deletes a member,
	// anything else replaces. Nil changes nothing.
	Body *value.Object

	Headers []Header
}

// Header is a header that a [Patch] sets or, with a nil value, removes. Its name is
// case-insensitive.
type Header struct {
	Name  string
	Value *string
}

// PatchRule is a patch for the models whose names match.
type PatchRule struct {
	Pattern string // regular expression for the whole name, as the configuration has it
	Patch   Patch
}

// Patches are the rules of a client by API, in the order in which they are tried.
// The first rule whose pattern matches applies, and no other. A pattern that is
// not a regular expression is skipped.
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
	if p.Body.Len() == 0 {
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
	for _, patched := range p.Headers {
		host := strings.EqualFold(patched.Name, "Host")
		switch {
		case patched.Value == nil:
			if host {
				req.Host = ""
			}
			h.Del(patched.Name)
			if strings.EqualFold(patched.Name, "User-Agent") {
				h.Set(patched.Name, "") // otherwise net/http adds its own
			}
		case host:
			req.Host = *patched.Value
		default:
			h.Set(patched.Name, *patched.Value)
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

// member is a member of a JSON object as it was written.
type member struct {
	name  string
	value json.RawMessage
}

// mergeBody returns the JSON text body with patch merged into it by the algorithm of RFC
// 7396, section 2. What the patch does not name stays as it is, byte by byte and in its
// place: the order of a schema's properties means something to a model. New members
// follow in the order of the patch. A body that is not an object is replaced by one.
func mergeBody(body []byte, patch *value.Object) ([]byte, error) {
	members, err := readMembers(body)
	if err != nil {
		return nil, err
	}
	for name, v := range patch.All() {
		at := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if v.IsNull() {
			members = slices.DeleteFunc(members, func(m member) bool { return m.name == name })
			continue
		}
		text := v.AppendJSON(nil)
		if nested := v.AsObject(); nested != nil {
			old := []byte("{}")
			if at >= 0 {
				old = members[at].value
			}
			if text, err = mergeBody(old, nested); err != nil {
				return nil, err
			}
		}
		if at < 0 {
			members = append(members, member{name: name, value: text})
		} else {
			members[at].value = text
		}
	}
	return writeMembers(members)
}

// readMembers returns the members of a JSON object in their order, and none of another
// JSON value. Of a name that comes twice the last value counts.
func readMembers(text []byte) ([]member, error) {
	if !json.Valid(text) {
		var v any
		return nil, json.Unmarshal(text, &v) // which says what is wrong
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		return nil, nil
	}
	var members []member
	places := make(map[string]int)
	dec := json.NewDecoder(bytes.NewReader(text))
	_, err := dec.Token() // the brace
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		m := member{name: fmt.Sprint(name)}
		err = dec.Decode(&m.value)
		if i, ok := places[m.name]; ok {
			members[i] = m
			continue
		}
		places[m.name] = len(members)
		members = append(members, m)
	}
	return members, err
}

func writeMembers(members []member) ([]byte, error) {
	b := []byte("{")
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := value.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}'), nil
}

// Without returns p without a member of its body, which path leads to from member to
// member.
func (p Patch) Without(path ...string) Patch {
	p.Body = without(p.Body, path)
	return p
}

func without(o *value.Object, path []string) *value.Object {
	v, ok := o.Get(path[0])
	if !ok {
		return o
	}
	rest := v.AsObject()
	if len(path) > 1 && rest == nil {
		return o
	}
	if len(path) > 1 {
		if rest = without(rest, path[1:]); rest.Len() > 0 {
			return o.Merge(value.ObjectOf(value.Member{Name: path[0], Value: rest.Value()}))
		}
	}
	return o.Without(path[0])
}
