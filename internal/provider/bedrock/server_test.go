package bedrock

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/smithy-go/eventstream"

	"loki/internal/provider/wire"
)

const (
	testKeyID  = "AKIDTEST"
	testSecret = "wJalrXUtnFEMI/K7MDENG"
	testToken  = "session-token"
	testRegion = "eu-central-1"
)

// script is how a server answers one request.
type script func(w http.ResponseWriter, r *http.Request)

// received is a request as the server saw it.
type received struct {
	path   string
	header http.Header
	body   string
}

// server is a scripted Bedrock on the loopback interface. It checks the signature
// of every request.
type server struct {
	*httptest.Server
	t      *testing.T
	busy   atomic.Int32
	mu     sync.Mutex
	script script
	got    []received
}

func newServer(t *testing.T, s script) *server {
	t.Helper()
	srv := &server{t: t, script: s}
	srv.Server = httptest.NewServer(http.HandlerFunc(srv.serve))
	t.Cleanup(srv.Close)
	return srv
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Add(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("reading the request: %v", err)
	}
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
		if err := checkSignature(r, body); err != nil {
			s.t.Errorf("signature: %v", err)
		}
	}
	s.mu.Lock()
	s.got = append(s.got, received{path: r.URL.EscapedPath(), header: r.Header.Clone(), body: string(body)})
	s.mu.Unlock()
	s.record(r, body)
	s.script(w, r)
}

// record writes the request to the directory that $LOKI_WIRE_OUT names.
func (s *server) record(r *http.Request, body []byte) {
	dir := os.Getenv("LOKI_WIRE_OUT")
	if dir == "" {
		return
	}
	api := "chat_completions"
	if strings.HasSuffix(r.URL.Path, "/invoke") {
		api = "embeddings"
	}
	text, err := json.Marshal(map[string]any{"api": api, "url": "http://" + r.Host + r.URL.EscapedPath(), "body": json.RawMessage(body)})
	if err == nil {
		err = writeNext(dir, "bedrock", text)
	}
	if err != nil {
		s.t.Errorf("recording a request: %v", err)
	}
}

// writeNext writes text to the first file of dir called name-1.json, name-2.json and
// so on that does not exist: other tests write there too.
func writeNext(dir, name string, text []byte) error {
	for n := 1; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	}
}

// last returns the last request.
func (s *server) last() received {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		s.t.Fatal("the server got no request")
	}
	return s.got[len(s.got)-1]
}

// waitIdle returns when the server serves no request.
func (s *server) waitIdle(ctx context.Context) error {
	for s.busy.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// client returns a client of the server, with access keys unless change takes them.
func (s *server) client(change func(*Options)) *Client {
	s.t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "aws", UserAgent: "loki/test", Transport: s.Client().Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	o := Options{
		Name: "aws", Region: testRegion, APIBase: s.URL + "/", HTTP: h,
		AccessKeyID: wire.StaticKey(testKeyID), SecretAccessKey: wire.StaticKey(testSecret), SessionToken: wire.StaticKey(testToken),
		Getenv: func(string) string { return "" },
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// checkSignature computes Signature Version 4 of the request anew, from the AWS
// documentation of the algorithm and without the SDK.
func checkSignature(r *http.Request, body []byte) error {
	fields := make(map[string]string)
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[0] != testKeyID || scope[2] != testRegion || scope[3] != "bedrock" {
		return fmt.Errorf("credential %q", fields["Credential"])
	}
	signed := strings.Split(fields["SignedHeaders"], ";")
	for _, name := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(signed, name) {
			return fmt.Errorf("%s is not signed, only %q are", name, signed)
		}
	}
	var headers strings.Builder
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	canonical := strings.Join([]string{
		r.Method, strings.ReplaceAll(r.URL.EscapedPath(), "%", "%25"), r.URL.RawQuery, headers.String(), fields["SignedHeaders"], hash(body),
	}, "\n")
	toSign := strings.Join([]string{
		"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), hash([]byte(canonical)),
	}, "\n")
	key := []byte("AWS4" + testSecret)
	for _, part := range scope[1:] {
		key = mac(key, part)
	}
	if want := hex.EncodeToString(mac(key, toSign)); fields["Signature"] != want {
		return fmt.Errorf("%s, want %s over\n%s", fields["Signature"], want, canonical)
	}
	return nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}

// frame returns an event-stream message with the given headers, name and value by
// turns.
func frame(payload string, headers ...string) []byte {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err) // headers of a test that are too long
	}
	return b.Bytes()
}

func event(typ, payload string) []byte {
	return frame(payload, ":event-type", typ, ":content-type", "application/json", ":message-type", "event")
}

func exceptionFrame(typ, message string) []byte {
	return frame(fmt.Sprintf(`{"message":%q}`, message), ":exception-type", typ, ":content-type", "application/json", ":message-type", "exception")
}

// transcript encodes lines "type payload", of which a type !name is an exception.
func transcript(text string) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		typ, payload, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !ok || strings.HasPrefix(typ, "#"):
		case typ[0] == '!':
			b.Write(frame(payload, ":exception-type", typ[1:], ":content-type", "application/json", ":message-type", "exception"))
		default:
			b.Write(event(typ, payload))
		}
	}
	return b.Bytes()
}

// streamed answers with an event stream.
func streamed(stream []byte) script {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", eventStreamType)
		_, _ = w.Write(stream)
	}
}

// documentReply answers with a status and a JSON document.
func documentReply(status int, body string, header ...string) script {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// either answers a request for a stream with one script and others with the other.
func either(stream, whole script) script {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/converse-stream") {
			stream(w, r)
			return
		}
		whole(w, r)
	}
}

// begun sends the beginning of a stream and then calls rest.
func begun(stream []byte, rest script) script {
	return func(w http.ResponseWriter, r *http.Request) {
		streamed(stream)(w, r)
		w.(http.Flusher).Flush()
		rest(w, r)
	}
}

func drop(http.ResponseWriter, *http.Request)     { panic(http.ErrAbortHandler) }
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
