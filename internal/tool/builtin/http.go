package builtin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/base/value"
	"loki/internal/base/web"
	"loki/internal/tool"
)

// Limits of requests.
const (
	serviceTimeout = 60 * time.Second
	maxReply       = 8 << 20 // bytes
	maxComplaint   = 500     // bytes of an error reply
)

// userAgent names the program to sites.
const userAgent = "loki (command-line assistant)"

// services returns the client for the services behind tools.
func (b *base) services() *http.Client {
	rt := b.HTTP
	if rt == nil {
		rt = web.Transport(b.Getenv)
	}
	return &http.Client{Transport: rt}
}

// request is a request to a service.
type request struct {
	service string // for errors
	method  string // GET if empty
	url     string
	header  map[string]string
	body    any    // is sent as JSON if not nil
	form    string // is sent as a form if not empty
	secrets []string
}

// do sends a request and returns the reply. A status other than 2xx is an error. Errors
// hold no secrets.
func (b *base) do(ctx context.Context, r request) ([]byte, error) {
	data, err := b.send(ctx, r)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		text := fmt.Sprintf("%s: %v", r.service, web.Reason(err))
		for _, s := range r.secrets {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
		return nil, fmt.Errorf("%s", text)
	}
	return data, nil
}

func (b *base) send(ctx context.Context, r request) ([]byte, error) {
	var body []byte
	kind := ""
	switch {
	case r.body != nil:
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
		kind = "application/json"
	case r.form != "":
		body, kind = []byte(r.form), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for name, v := range r.header {
		req.Header.Set(name, v)
	}
	resp, err := b.services().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := web.ReadAll(resp.Body, maxReply)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, fmt.Errorf("%s%s", resp.Status, complaint(data))
	}
	return data, err
}

// complaint returns the text of an error reply, as far as it is text.
func complaint(data []byte) string {
	said := strings.TrimSpace(string(data))
	if said == "" || !utf8.ValidString(said) || strings.HasPrefix(said, "<") {
		return ""
	}
	return ": " + text.Cut(said, maxComplaint)
}

// reply sends a request and reads the JSON of the reply.
func reply[T any](ctx context.Context, b *base, r request) (T, error) {
	var v T
	data, err := b.do(ctx, r)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s: the reply is not the JSON that was expected", r.service)
	}
	return v, nil
}

// once returns the key by which a service recognizes a repeated request. It reveals
// nothing about the run, and is empty if the run is not recorded.
func once(call tool.Call) string {
	if call.IdempotencyKey == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(call.IdempotencyKey))
	return hex.EncodeToString(sum[:16])
}

// pretty returns v as JSON for a model.
func pretty(v any) (string, error) {
	doc, err := value.Marshal(v)
	return string(doc), err
}
