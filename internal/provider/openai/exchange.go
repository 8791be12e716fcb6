package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"loki/internal/provider"
)

// replyLimits returns how long a reply may be, in bytes. 2,000 vectors of 4,000
// numbers are 100 MB of JSON.
func replyLimits() map[operation]int64 {
	return map[operation]int64{opChat: 64 << 20, opRerank: 64 << 20, opEmbeddings: 256 << 20}
}

// maxFailure is how much of a body is read that is only going to be shown.
const maxFailure = 64 << 10

// exchange is one HTTP request and its response, of any status.
type exchange struct {
	client  *Client
	where   string // the URL without what may be secret
	secrets secrets

	status int
	header http.Header
	body   *body
}

// post sends payload, patched, to the operation's URL. The caller closes the
// exchange's body. The error is ready for the consumer.
func (c *Client) post(ctx context.Context, op operation, name string, m Model, payload any, stream bool) (*exchange, error) {
	key, err := c.apiKey()
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, secrets: secretsOf(key)}
	data, err := encode(payload)
	if err != nil {
		return nil, &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}
	}
	target, header := c.endpoint(op, m.RealName), c.headers(key, stream)
	for _, p := range []Patch{m.Patch, c.patches.find(op, name)} {
		target = cmp.Or(p.URL, target)
		if data, err = mergeBody(data, p.Body); err != nil {
			return nil, &provider.Error{Kind: provider.Invalid, Msg: "patch of model " + name, Err: err}
		}
		for _, field := range p.apply(header) {
			x.secrets.addField(field, header.Get(field))
		}
	}
	if err := x.send(ctx, target, header, data, c.limits[op]); err != nil {
		return nil, x.secrets.inError(err)
	}
	return x, nil
}

func (x *exchange) send(ctx context.Context, target string, header http.Header, data []byte, limit int64) error {
	c := x.client
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return &provider.Error{Kind: provider.Invalid, Msg: "the URL of the request, set by a patch, is malformed"}
	}
	x.where = publicURL(u)
	if c.log.Enabled(ctx, slog.LevelDebug) {
		c.log.DebugContext(ctx, "provider request", "client", c.name, "url", x.where, "body", x.secrets.hide(string(data)))
	}
	req, cancel := context.WithCancel(ctx)
	// The body, once there is one, takes over the cancel function.
	b := &body{cancel: cancel, silence: c.readTimeout, left: limit}
	r, err := http.NewRequestWithContext(req, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		cancel()
		return &provider.Error{Kind: provider.Invalid, Msg: "the URL of the request, set by a patch, is malformed"}
	}
	r.Header = header
	if host := header.Get("Host"); host != "" {
		r.Host = host
		header.Del("Host")
	}
	stop := b.watch()
	resp, err := c.http.Do(r)
	stop()
	if err != nil {
		cancel()
		return c.ioError(ctx, b.silent.Load(), "asking", x.where, err)
	}
	b.rc = resp.Body
	x.status, x.header, x.body = resp.StatusCode, resp.Header, b
	return nil
}

func (x *exchange) readError(ctx context.Context, err error) error {
	return x.client.ioError(ctx, x.body.silent.Load(), "reading the reply of", x.where, err)
}

// ok reports whether the request succeeded.
func (x *exchange) ok() bool { return x.status >= 200 && x.status < 300 }

// rejection is a response with another status than 2xx.
type rejection struct {
	body []byte
	err  error // for the consumer
}

// reject reads the response of a failed request and closes it.
func (x *exchange) reject(ctx context.Context) rejection {
	defer x.body.Close()
	data, err := io.ReadAll(io.LimitReader(x.body, maxFailure))
	if err != nil && ctx.Err() != nil {
		return rejection{err: x.readError(ctx, err)}
	}
	// What has been read of a broken body is worth more than how it broke.
	return rejection{body: data, err: x.secrets.inError(statusError(x.status, x.header, data))}
}

// postJSON sends payload and gives the body of a successful response to read.
func (c *Client) postJSON(ctx context.Context, op operation, name string, m Model, payload any, read func([]byte) error) error {
	x, err := c.post(ctx, op, name, m, payload, false)
	if err != nil {
		return err
	}
	if !x.ok() {
		return x.reject(ctx).err
	}
	defer x.body.Close()
	data, err := io.ReadAll(x.body)
	if err != nil {
		return x.secrets.inError(x.readError(ctx, err))
	}
	return x.secrets.inError(read(data))
}

// API versions of Azure OpenAI.
const (
	azureChatVersion       = "2024-12-01-preview"
	azureEmbeddingsVersion = "2024-10-21"
)

func (c *Client) endpoint(op operation, realName string) string {
	path := map[operation]string{opChat: "/chat/completions", opEmbeddings: "/embeddings", opRerank: "/rerank"}[op]
	switch {
	case c.kind == kindAzure:
		version := azureChatVersion
		if op == opEmbeddings {
			version = azureEmbeddingsVersion
		}
		return c.base + "/openai/deployments/" + url.PathEscape(realName) + path + "?api-version=" + version
	case op == opRerank && strings.HasPrefix(c.name, "ernie"):
		path = "/rerankers"
	}
	return c.base + path
}

func (c *Client) headers(key string, stream bool) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if stream {
		h.Set("Accept", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("Accept-Encoding", "identity") // compression makes proxies hold chunks back
	}
	switch {
	case key == "":
	case c.kind == kindAzure:
		h.Set("Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
	if c.org != "" {
		h.Set("OpenAI-Organization", c.org)
	}
	if c.userAgent != "" {
		h.Set("User-Agent", c.userAgent)
	}
	return h
}

// apiKey returns the key. Only compatible servers may go without.
func (c *Client) apiKey() (string, error) {
	key := ""
	if c.key != nil {
		var err error
		if key, err = c.key(); err != nil {
			return "", &provider.Error{Kind: provider.Authentication, Msg: "API key of client " + c.name, Err: err}
		}
	}
	key = strings.TrimSpace(key)
	if key == "" && c.kind != kindCompatible {
		variable := strings.ToUpper(strings.ReplaceAll(c.name, "-", "_")) + "_API_KEY"
		return "", &provider.Error{
			Kind: provider.Authentication,
			Msg:  "client " + c.name + " has no API key: set " + variable + ", or api_key in its configuration",
		}
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", &provider.Error{Kind: provider.Authentication, Msg: "the API key of client " + c.name + " holds characters that no key has"}
	}
	return key, nil
}

// publicURL returns u without user, query and fragment.
func publicURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// encode is [json.Marshal] without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
