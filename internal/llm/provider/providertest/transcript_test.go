package providertest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loki/internal/llm/provider/providertest"
)

const transcript = `# A greeting, and then a list.
provider: acme
api: chat

> POST /v1/chat?x=1
> Authorization: Bearer k
{"b": [1, 2.0],
 "a": "x"}

< 200
< Content-Type: text/event-stream
< @chunk 3
data: one

data: two

> GET /v1/list
< 429
< Retry-After: 2
< @base64
aGVs
bG8=
`

func TestParseTranscript(t *testing.T) {
	got, err := providertest.ParseTranscript([]byte(transcript))
	if err != nil {
		t.Fatal(err)
	}
	want := providertest.Transcript{Provider: "acme", API: "chat", Exchanges: []providertest.Exchange{
		{
			providertest.RecordedRequest{
				Method: "POST", Target: "/v1/chat?x=1", Header: http.Header{"Authorization": {"Bearer k"}},
				Body: []byte("{\"b\": [1, 2.0],\n \"a\": \"x\"}\n\n"),
			},
			providertest.RecordedResponse{
				Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Chunk: 3,
				Body: []byte("data: one\n\ndata: two\n\n"),
			},
		},
		{
			providertest.RecordedRequest{Method: "GET", Target: "/v1/list", Header: http.Header{}},
			providertest.RecordedResponse{Status: 429, Header: http.Header{"Retry-After": {"2"}}, Body: []byte("hello")},
		},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestParseTranscriptRejects(t *testing.T) {
	const head = "provider: p\napi: a\n"
	for text, want := range map[string]string{
		"":                                      "0: provider: and api:",
		"provider: p\n> GET /\n< 200\n":         "1: provider: and api:",
		"nonsense\n":                            `1: unknown line "nonsense"`,
		head:                                    "2: no exchange",
		head + "> GET\n< 200\n":                 `3: "GET": want METHOD PATH`,
		head + "> GET /\n> nonsense\n< 200\n":   `4: "nonsense": want NAME: VALUE`,
		head + "> GET /\n{}\n":                  "4: a request without a response",
		head + "> GET /\n< ok\n":                "4: strconv.Atoi",
		head + "> GET /\n< 99\n":                "4: status 99",
		head + "> GET /\n< 200\n< @chunk -1\n":  "5: status 200 and chunk -1",
		head + "> GET /\n< 200\n< @base64\n!\n": "6: illegal base64",
	} {
		if _, err := providertest.ParseTranscript([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error = %v, want %s", text, err, want)
		}
	}
}

// complaints is a test that keeps what is reported to it.
type complaints struct {
	testing.TB
	said    []string
	cleanup []func()
}

func (c *complaints) Helper()          {}
func (c *complaints) Failed() bool     { return len(c.said) > 0 }
func (c *complaints) Cleanup(f func()) { c.cleanup = append(c.cleanup, f) }
func (c *complaints) Error(args ...any) {
	c.said = append(c.said, args[0].(string))
}

func (c *complaints) Errorf(format string, _ ...any) { c.said = append(c.said, format) }

func TestPlay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(file, []byte(transcript), 0o600); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	t.Setenv("LOKI_WIRE_OUT", out)
	type sent struct{ method, path, key, body, want string }
	good := sent{"POST", "/v1/chat?x=1", "Bearer k", `{"a":"x","b":[1,2]}`, "data: one\n\ndata: two\n\n"}
	list := sent{"GET", "/v1/list", "", "", "hello"}
	for _, tt := range []struct {
		name string
		send []sent
		want string // the complaint, empty for none
	}{
		{"as_recorded", []sent{good, list}, ""},
		{"other_body", []sent{{"POST", "/v1/chat?x=1", "Bearer k", `{"a":"x","b":[2,1]}`, ""}}, "request 1: the body is"},
		{"no_json", []sent{{"POST", "/v1/chat?x=1", "Bearer k", `hm`, ""}}, "request 1: the body is\nhm"},
		{"other_path", []sent{{"POST", "/v1/chat", "Bearer k", good.body, ""}}, "request 1: POST /v1/chat, want POST /v1/chat?x=1"},
		{"other_header", []sent{{"POST", "/v1/chat?x=1", "Bearer q", good.body, ""}}, `request 1: header Authorization is "Bearer q"`},
		{"body_where_none_is", []sent{good, {"GET", "/v1/list", "", "{}", ""}}, "request 2: the recorded body"},
		{"too_many", []sent{good, list, list}, "request 3 is not in the transcript"},
		{"too_few", []sent{good}, "%s: %d of %d requests came"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &complaints{TB: t}
			p := providertest.Play(c, file)
			for _, s := range tt.send {
				req, err := http.NewRequestWithContext(t.Context(), s.method, p.URL+s.path, strings.NewReader(s.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", s.key)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if tt.want == "" && (err != nil || string(body) != s.want) {
					t.Errorf("reply %q, %v", body, err)
				}
			}
			for _, f := range c.cleanup {
				f()
			}
			if got := strings.Join(c.said, "|"); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("complaint %q, want %q", got, tt.want)
			}
		})
	}
	var kept struct {
		API, URL string
		Body     any
	}
	data, err := os.ReadFile(filepath.Join(out, "acme-1.json"))
	if err != nil || json.Unmarshal(data, &kept) != nil || kept.API != "chat" || kept.URL != "/v1/chat?x=1" || kept.Body.(map[string]any)["a"] != "x" {
		t.Errorf("kept %s, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(out, "acme-2.json")); err != nil {
		t.Error(err)
	}
}

func TestPlayCuts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(file, []byte("provider: p\napi: a\n> GET /\n< 200\n< @cut\nhalf"), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(providertest.Play(t, file).URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "half" || err == nil {
		t.Errorf("%q, %v", body, err)
	}
}
