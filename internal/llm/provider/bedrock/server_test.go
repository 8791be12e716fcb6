package bedrock

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go/eventstream"

	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

const (
	testKeyID  = "AKIDTEST"
	testSecret = "wJalrXUtnFEMI/K7MDENG"
	testToken  = "session-token"
	testRegion = "eu-central-1"
)

// server is a scripted Bedrock. It checks the signature of every request.
type server struct {
	*wiretest.Server
	t *testing.T
}

func newServer(t *testing.T, script ...wiretest.Reply) *server {
	t.Helper()
	s := &server{wiretest.New(t, wiretest.Options{Provider: "bedrock"}, script...), t}
	s.Check = func(r *http.Request, body []byte) error {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
			return nil
		}
		return checkSignature(r, body)
	}
	return s
}

// client returns a client of the server, with access keys unless change takes them.
func (s *server) client(change func(*Options)) *Client {
	s.t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "aws", UserAgent: "loki/test", Transport: s.Client().Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	o := Options{
		Options: client.Options{Name: "aws", APIBase: s.URL() + "/", HTTP: h}, Region: testRegion,
		AccessKeyID: wiretest.Key(testKeyID), SecretAccessKey: wiretest.Key(testSecret), SessionToken: wiretest.Key(testToken),
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
		return fmt.Errorf("signature: credential %q", fields["Credential"])
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
func streamed(stream []byte) wiretest.Reply { return wiretest.Body(eventStreamType, string(stream)) }
