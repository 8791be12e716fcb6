package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"loki/internal/base/text"
	"loki/internal/tool/mcp/oauth"
)

// refusal is the answer of a remote server that refuses a request, in the server's words.
type refusal struct {
	status int
	words  string
	rpc    *jsonrpc.Error // in the body; may be nil
	lost   bool           // the server does not know the session of the request

	challenge oauth.Challenge
	token     string // that was refused
}

// login reports whether a login may help.
func (e *refusal) login() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden && e.challenge.Narrow
}

func (e *refusal) Error() string {
	line := fmt.Sprintf("HTTP %d %s", e.status, http.StatusText(e.status))
	if e.words != "" {
		line += ": " + e.words
	}
	return line
}

// Unwrap returns the error of the protocol that the body holds.
func (e *refusal) Unwrap() error {
	if e.rpc == nil {
		return nil
	}
	return e.rpc
}

// hint returns what the user can do, empty if that is not known.
func (e *refusal) hint(server string) string {
	if !e.login() {
		return ""
	}
	return fmt.Sprintf(`send a key: "headers": {"Authorization": "Bearer {{NAME}}"} in mcp.json, or log in: loki --authenticate mcp:%s`, server)
}

const (
	maxRefusal  = 64 << 10 // bytes of a body that are read
	refusalTime = 5 * time.Second
	maxWords    = 800
)

// refusalOf returns the refusal in a response, nil if it is not one.
func refusalOf(req *http.Request, resp *http.Response, legacy bool, token string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case req.Method != http.MethodPost && !legacy:
		return nil
	case resp.StatusCode < 400 && kind != "text/html":
		return nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil
	}
	defer resp.Body.Close()
	stop := time.AfterFunc(refusalTime, func() { resp.Body.Close() })
	defer stop.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	e := &refusal{status: resp.StatusCode, challenge: oauth.ReadChallenge(resp.Header.Values("WWW-Authenticate")), token: token}
	var message struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &message) == nil {
		e.rpc = message.Error
	}
	e.words = wordsOf(body, kind)
	e.lost = req.Header.Get("Mcp-Session-Id") != "" && (e.status == http.StatusNotFound || e.status == http.StatusBadRequest && aboutSession().MatchString(e.words))
	return e
}

// aboutSession is in what servers say of a session that they do not know, if they do not say so by the status 404.
var aboutSession = text.Regexp(`(?i)\bsession|not initialized`)

// wordsOf returns what a body says, in one line.
func wordsOf(body []byte, kind string) string {
	var v any
	if json.Unmarshal(body, &v) == nil {
		if words := wordsIn(v, 0); words != "" {
			return text.OneLine(words, maxWords)
		}
	}
	s := string(body)
	if kind == "text/html" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(s)), "<!doctype") || strings.HasPrefix(strings.TrimSpace(s), "<html") {
		s = markup().ReplaceAllString(s, " ")
		return text.OneLine(s, maxWords/4)
	}
	return text.OneLine(s, maxWords)
}

// markup is what of a page is not text.
var markup = text.Regexp(`(?is)<(script|style)\b.*?</(script|style)>|<!--.*?-->|<[^>]*>`)

// wordsIn returns the message in JSON, empty if there is none.
func wordsIn(v any, depth int) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 && depth < 4 {
			return wordsIn(v[0], depth+1)
		}
	case map[string]any:
		if depth == 4 {
			return ""
		}
		for _, name := range []string{"error", "errors", "message", "detail", "error_description", "title", "reason", "msg"} {
			words := wordsIn(v[name], depth+1)
			if words == "" {
				continue
			}
			if more, ok := v["error_description"].(string); ok && name == "error" {
				return words + ": " + more
			}
			if data, ok := v["data"]; ok && name == "message" && data != nil {
				if doc, err := json.Marshal(data); err == nil {
					return words + " " + cmp.Or(wordsIn(data, depth+1), string(doc))
				}
			}
			return words
		}
	}
	return ""
}

// keeper is the body of a stream of events whose messages pass [keep].
type keeper struct {
	io.ReadCloser
	keep func([]byte) []byte

	raw   []byte // of the body, not yet taken apart
	ready []byte // to be read
	err   error  // of the body
	max   int64
}

// Read implements io.Reader.
func (k *keeper) Read(p []byte) (int, error) {
	for len(k.ready) == 0 {
		if i, n := eventEnd(k.raw); i >= 0 {
			k.ready = append(k.event(k.raw[:i]), "\n\n"...)
			k.raw = k.raw[i+n:]
			continue
		}
		switch {
		case k.err != nil && len(k.raw) > 0:
			k.ready, k.raw = k.event(k.raw), nil
			continue
		case k.err != nil:
			return 0, k.err
		case int64(len(k.raw)) > k.max:
			k.err, k.raw = errHuge, nil
			continue
		}
		buffer := make([]byte, 32<<10)
		n, err := k.ReadCloser.Read(buffer)
		k.raw = append(k.raw, buffer[:n]...)
		k.err = err
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil
}

// eventEnd returns where the blank line after an event begins, and how long it is; -1 if there is none yet.
func eventEnd(raw []byte) (at, length int) {
	at = -1
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(raw, []byte(end)); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(end)
		}
	}
	return at, length
}

// event returns an event with its data on one line.
func (k *keeper) event(raw []byte) []byte {
	var out, data []byte
	found := false
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		rest, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			out = append(append(out, line...), '\n')
			continue
		}
		if found {
			data = append(data, '\n')
		}
		data, found = append(data, bytes.TrimPrefix(rest, []byte(" "))...), true
	}
	if !found {
		return raw
	}
	data = k.keep(data)
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return bytes.TrimSuffix(out, []byte("\n"))
}
