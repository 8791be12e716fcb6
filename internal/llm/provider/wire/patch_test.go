package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"loki/internal/llm/event/logging"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/openaitest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

type object = map[string]any

func body(members object) wire.Patch { return wire.Patch{Body: providertest.Object(members)} }

func rules(rules ...wire.PatchRule) wire.Patches {
	return wire.Patches{wire.ChatCompletions: rules}
}

func rule(pattern string, members object) wire.PatchRule {
	return wire.PatchRule{Pattern: pattern, Patch: body(members)}
}

// TestPatchedBody patches {"model":"real","temperature":0.5} of a model that the
// configuration calls alias, on the way and before.
func TestPatchedBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		model  object
		client wire.Patches
		want   string
	}{
		{"none", nil, nil, `{"model":"real","temperature":0.5}`},
		{"model_only", object{"temperature": nil, "seed": 7}, nil, `{"model":"real","seed":7}`},
		{"client_after_model", object{"temperature": 1, "seed": 7}, rules(rule(".*", object{"temperature": 2})), `{"model":"real","temperature":2,"seed":7}`},
		{"first_match_only", nil, rules(rule("al.*", object{"a": 1}), rule("alias", object{"b": 1})), `{"model":"real","temperature":0.5,"a":1}`},
		{"whole_name", nil, rules(rule("ali", object{"a": 1}), rule("lias", object{"b": 1}), rule("a|s", object{"c": 1})), `{"model":"real","temperature":0.5}`},
		{"alias_not_real_name", nil, rules(rule("real", object{"a": 1})), `{"model":"real","temperature":0.5}`},
		{"other_api", nil, wire.Patches{wire.Embeddings: {rule("alias", object{"a": 1})}}, `{"model":"real","temperature":0.5}`},
		{"invalid_pattern_skipped", nil, rules(rule("(", object{"a": 1}), rule("alias", object{"b": 1})), `{"model":"real","temperature":0.5,"b":1}`},
		{"objects_merge", object{"x": object{"a": 1, "b": object{"c": 1}}}, rules(rule(".*", object{"x": object{"a": nil, "b": object{"d": 2}}})), `{"model":"real","temperature":0.5,"x":{"b":{"c":1,"d":2}}}`},
		{"lists_replace", object{"stop": []string{"a", "b"}}, rules(rule(".*", object{"stop": []string{"c"}})), `{"model":"real","temperature":0.5,"stop":["c"]}`},
		{"nulls_in_new_objects_go", object{"x": object{"y": nil, "z": 1}}, nil, `{"model":"real","temperature":0.5,"x":{"z":1}}`},
		{"large_numbers_kept", object{"seed": json.Number("9007199254740993")}, rules(rule(".*", object{"a": 1})), `{"model":"real","temperature":0.5,"seed":9007199254740993,"a":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := openaitest.New(t)
			server.Always(openaitest.Text("ok"))
			call := wire.Call{API: wire.ChatCompletions, Model: "alias", Patch: body(tt.model)}
			if _, err := postAs(t.Context(), t, wire.Options{Patches: tt.client}, server.URL(), call); err != nil {
				t.Fatal(err)
			}
			if got := string(server.Requests()[0].Body); got != tt.want {
				t.Errorf("body %s, want %s", got, tt.want)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host.test", strings.NewReader(`{"model":"real","temperature":0.5}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.Apply(req, tt.client, call); err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(req.Body); string(got) != tt.want || req.ContentLength != int64(len(tt.want)) {
				t.Errorf("Apply: body %s of length %d, want %s", got, req.ContentLength, tt.want)
			}
		})
	}
}

// What a patch does not name stays as it was written, in its place; new members follow in
// the order of the patch.
func TestPatchedBodyKeepsOrder(t *testing.T) {
	for _, tt := range []struct{ name, body, patch, want string }{
		{
			"schema", `{"tools":[{"z":1,"a":{"y":1,"b":2}}],"model":"m","max":{"z":0.10,"a":1e2}}`, `{"new":{"z":1,"b":2},"model":"n","max":{"a":2}}`,
			`{"tools":[{"z":1,"a":{"y":1,"b":2}}],"model":"n","max":{"z":0.10,"a":2},"new":{"z":1,"b":2}}`,
		},
		{"spaces_and_html", `{ "b" : "<&>" , "a" : 12345678901234567890123 }`, `{"c":"<"}`, `{"b":"<&>","a":12345678901234567890123,"c":"<"}`},
		{"deleted", `{"c":1,"b":{"y":1,"x":2},"a":3}`, `{"b":{"y":null},"a":null}`, `{"c":1,"b":{"x":2}}`},
		{"member_twice", `{"a":1,"b":2,"a":3}`, `{"c":4}`, `{"a":3,"b":2,"c":4}`},
		{"object_for_text", `{"a":"x"}`, `{"a":{"b":1,"c":null}}`, `{"a":{"b":1}}`},
		{"not_an_object", `[1]`, `{"a":1}`, `{"a":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host.test", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			patch := wire.Patch{Body: providertest.Object(json.RawMessage(tt.patch))}
			if err := wire.Apply(req, nil, wire.Call{Patch: patch}); err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(req.Body); string(got) != tt.want {
				t.Errorf("body %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPatchWithout(t *testing.T) {
	patch := wire.Patch{Body: providertest.Object(json.RawMessage(`{"a":{"b":1,"c":2},"d":{"e":1},"f":3}`))}
	for _, tt := range []struct {
		path []string
		want string
	}{
		{[]string{"f"}, `{"a":{"b":1,"c":2},"d":{"e":1}}`},
		{[]string{"a", "b"}, `{"a":{"c":2},"d":{"e":1},"f":3}`},
		{[]string{"d", "e"}, `{"a":{"b":1,"c":2},"f":3}`},
		{[]string{"f", "e"}, `{"a":{"b":1,"c":2},"d":{"e":1},"f":3}`},
		{[]string{"none"}, `{"a":{"b":1,"c":2},"d":{"e":1},"f":3}`},
	} {
		if got := string(patch.Without(tt.path...).Body.Value().AppendJSON(nil)); got != tt.want {
			t.Errorf("without %v: %s", tt.path, got)
		}
	}
	if got := (wire.Patch{}).Without("a", "b"); got.Body.Len() != 0 {
		t.Errorf("without of nothing: %v", got)
	}
}

func TestPatchedHeadersAndURL(t *testing.T) {
	other := openaitest.New(t)
	other.Always(wiretest.Body("text/plain", "other"))
	o := wire.Options{UserAgent: "loki/1", Patches: rules(wire.PatchRule{Pattern: "m", Patch: wire.Patch{
		URL:     other.URL() + "/special?x=1",
		Headers: []wire.Header{{Name: "authorization", Value: new("Custom abc")}, {Name: "X-Version", Value: new("2")}, {Name: "user-agent"}, {Name: "content-type"}},
	}})}
	if text, err := post(t, o, "http://model.invalid"); text != "other" {
		t.Fatalf("text %q, error %v", text, err)
	}
	got := other.Requests()[0]
	if got.Path != "/special?x=1" {
		t.Errorf("path = %s", got.Path)
	}
	for name, want := range map[string][]string{
		"Authorization": {"Custom abc"}, "X-Version": {"2"}, "User-Agent": nil, "Content-Type": nil, "X-Number": nil,
	} {
		if v := got.Header.Values(name); strings.Join(v, "|") != strings.Join(want, "|") {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
}

// hosts answers with the host that a request names.
type hosts struct{}

func (hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(r.Host)), Request: r}, nil
}

func TestPatchedHost(t *testing.T) {
	for _, tt := range []struct {
		patch wire.Patch
		want  string
	}{
		{wire.Patch{Headers: []wire.Header{{Name: "host", Value: new("virtual.test")}}}, "virtual.test"},
		{wire.Patch{URL: "http://other.test/"}, ""}, // which net/http takes from the URL
		{wire.Patch{}, "server.test"},
	} {
		got, err := postAs(t.Context(), t, wire.Options{Transport: hosts{}}, "http://server.test", wire.Call{Patch: tt.patch})
		if got != tt.want || err != nil {
			t.Errorf("%+v: host %q, %v", tt.patch, got, err)
		}
	}
}

func TestPatchThatDoesNotApply(t *testing.T) {
	for _, patch := range []wire.Patch{{URL: "not a url"}, {URL: "http://%zz/"}, {URL: "/path"}} {
		if _, err := postAs(t.Context(), t, wire.Options{}, "http://server.invalid", wire.Call{Patch: patch}); err == nil || provider.Retryable(err) {
			t.Errorf("%+v: error %v", patch, err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host.test", strings.NewReader("no JSON"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Apply(req, nil, wire.Call{Patch: body(object{"a": 1})}); err == nil || provider.Retryable(err) {
		t.Errorf("error %v", err)
	}
}

// TestRequestIsLeftAlone: a transport must not change the request it is given.
func TestRequestIsLeftAlone(t *testing.T) {
	client, err := wire.NewClient(wire.Options{Transport: hosts{}, UserAgent: "loki/1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := wire.WithCall(t.Context(), wire.Call{Patch: wire.Patch{URL: "http://other.test", Headers: []wire.Header{{Name: "X-A", Value: new("1")}}}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if req.URL.Host != "server.test" || len(req.Header) != 0 {
		t.Errorf("request %v, %v", req.URL, req.Header)
	}
}

// TestLog holds the log to showing a request as it is sent, without its secrets, at level
// trace, and nothing of it at debug. Requests for credentials keep their bodies.
func TestLog(t *testing.T) {
	for _, tt := range []struct {
		name        string
		level       slog.Level
		credentials bool
		want        []string
		not         []string
	}{
		{
			"trace", logging.LevelTrace, false,
			[]string{"method=POST", "/v1/chat/completions?sort=asc&token=***", "X-Team:[research]", "Authorization:[***]", "temperature", "key is ***, token is ***", "status=200"},
			nil,
		},
		{"debug", slog.LevelDebug, false, nil, []string{"/chat/completions", "temperature", "X-Team"}},
		{"credentials", logging.LevelTrace, true, []string{"/v1/chat/completions"}, []string{"temperature", "X-Team", "token is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			server := openaitest.New(t)
			server.Always(openaitest.Text("ok"))
			o := wire.Options{
				Log:         slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: tt.level})),
				Patches:     wire.Patches{wire.Rerank: {{Pattern: "["}}},
				Credentials: tt.credentials,
			}
			call := wire.Call{API: wire.ChatCompletions, Model: "m", Patch: wire.Patch{
				URL:     server.URL() + "/chat/completions?token=tok-abcdef&sort=asc",
				Headers: []wire.Header{{Name: "X-Api-Token", Value: new("tok-abcdef")}, {Name: "X-Team", Value: new("research")}},
				Body:    providertest.Object(object{"user": "key is " + key + ", token is tok-abcdef"}),
			}}
			if _, err := postAs(t.Context(), t, o, server.URL(), call); err != nil {
				t.Fatal(err)
			}
			log := out.String()
			if !tt.credentials {
				tt.want = append(tt.want, "patch rule skipped")
			}
			for _, want := range tt.want {
				if !strings.Contains(log, want) {
					t.Errorf("log lacks %q: %s", want, log)
				}
			}
			for _, not := range append(tt.not, key, "tok-abcdef", "Bearer") {
				if strings.Contains(log, not) {
					t.Errorf("log has %q: %s", not, log)
				}
			}
		})
	}
}

// FuzzMergePatch holds merging to RFC 7396: the result has what the patch sets and
// nothing that it deletes.
func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":"b"}`, `{"a":null,"c":{"d":[1]}}`)
	f.Add(`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`)
	f.Add(`{"e":null}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		var members object
		if json.Unmarshal([]byte(patch), &members) != nil || len(members) == 0 || !json.Valid([]byte(doc)) {
			return
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host.test", strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Apply(req, nil, wire.Call{Patch: body(members)}); err != nil {
			t.Fatal(err)
		}
		var got object
		data, _ := io.ReadAll(req.Body)
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for name, v := range members {
			if merged, has := got[name]; has == (v == nil) {
				t.Errorf("%s patched by %s: %s is %v", doc, patch, name, merged)
			}
		}
	})
}
