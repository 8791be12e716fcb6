package bedrock

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/providertest/wiretest"
)

// canned is a transport that answers with the event stream in the context.
type canned struct{}

type cannedKey struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	stream, _ := r.Context().Value(cannedKey{}).([]byte)
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {eventStreamType}}, Body: io.NopCloser(bytes.NewReader(stream)),
	}, nil
}

// isolate removes what the SDK would find in the environment of the tests.
func isolate(t testing.TB) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
}

// newSource returns a source that sees env, with HOME at home. It knows no machine unless
// env says otherwise.
func newSource(home string, env map[string]string) *source {
	return &source{client: "aws-1", getenv: func(name string) string {
		value, ok := env[name]
		switch {
		case name == "HOME":
			return home
		case name == "AWS_EC2_METADATA_DISABLED" && !ok:
			return "true"
		}
		return value
	}}
}

// writeFile writes a file of the directory .aws below home.
func writeFile(t testing.TB, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, ".aws", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCredentials(t *testing.T) {
	isolate(t)
	files := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		writeFile(t, files, name, text)
	}
	write("credentials", "# keys\n[default]\naws_access_key_id = DEFAULT # old\naws_secret_access_key=ds\n\n[work]\naws_access_key_id=WORK\naws_secret_access_key=ws=/+\naws_session_token=wt\n")
	write("config", "[default]\nregion = us-west-2\ns3 =\n  region = nested\n[profile work]\nregion=eu-west-1\n")
	write("broken/credentials", "")
	failing := func() (string, error) { return "", errors.New("the vault is locked") }
	for _, tt := range []struct {
		name    string
		env     map[string]string
		change  func(*source)
		want    string // key, secret, token, bearer, region
		wantErr string
	}{
		{"own_keys_win", map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es", "AWS_REGION": "r"}, func(s *source) {
			s.accessKeyID, s.secretAccessKey, s.apiKey = wiretest.Key(" OWN\n"), wiretest.Key("os"), failing
		}, "OWN os   r", ""},
		{"own_api_key", map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es"}, func(s *source) { s.apiKey, s.region = wiretest.Key("abc"), "q" }, "   abc q", ""},
		{"bearer_of_environment", map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "tok", "AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es", "AWS_DEFAULT_REGION": "d"}, nil, "   tok d", ""},
		{"keys_of_environment", map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es", "AWS_SESSION_TOKEN": "et", "AWS_REGION": "r", "AWS_DEFAULT_REGION": "d"}, nil, "E es et  r", ""},
		{"region_of_profile", map[string]string{"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "es"}, nil, "E es   us-west-2", ""},
		{"default_profile", nil, nil, "DEFAULT ds   us-west-2", ""},
		{"named_profile", map[string]string{"AWS_PROFILE": "work"}, nil, "WORK ws=/+ wt  eu-west-1", ""},
		{"file_of_environment", map[string]string{"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(files, ".aws", "config")}, nil, "", "has no credentials: set AWS_1_ACCESS_KEY_ID"},
		{"unknown_profile", map[string]string{"AWS_PROFILE": "nobody"}, nil, "", "has no credentials"},
		{"no_region", map[string]string{"AWS_PROFILE": "nobody"}, func(s *source) { s.accessKeyID, s.secretAccessKey = wiretest.Key("a"), wiretest.Key("b") }, "", "has no region: set AWS_1_REGION"},
		{"half_a_pair", nil, func(s *source) { s.accessKeyID = wiretest.Key("a") }, "", "no secret_access_key"},
		{"other_half", nil, func(s *source) { s.secretAccessKey = wiretest.Key("a") }, "", "no access_key_id"},
		{"failing", nil, func(s *source) { s.accessKeyID = failing }, "", "access_key_id of client aws-1: the vault is locked"},
		{"malformed", nil, func(s *source) { s.accessKeyID = wiretest.Key("a\nb") }, "", "malformed access_key_id"},
		{"unreadable", map[string]string{"AWS_SHARED_CREDENTIALS_FILE": files}, nil, "", files},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSource(files, tt.env)
			if tt.change != nil {
				tt.change(s)
			}
			a, err := s.resolve(t.Context())
			if tt.wantErr != "" {
				e, ok := errors.AsType[*provider.Error](err)
				if !ok || e.Kind != provider.Authentication || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			got := strings.Join([]string{a.keys.AccessKeyID, a.keys.SecretAccessKey, a.keys.SessionToken, a.bearer, a.region}, " ")
			if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestBearerToken(t *testing.T) {
	srv := &server{wiretest.New(t, wiretest.Options{TLS: true}, wiretest.Status(200, textWhole)), t} // the SDK sends tokens nowhere else
	c := srv.client(func(o *Options) {
		o.AccessKeyID, o.SecretAccessKey, o.SessionToken = nil, nil, nil
		o.APIKey = wiretest.Key("bedrock-api-key-x")
	})
	for _, err := range c.Chat(t.Context(), provider.Request{Model: llama}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := srv.Last().Header.Get("Authorization"); got != "Bearer bedrock-api-key-x" {
		t.Errorf("authorization %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no_name": {}, "base_without_host": {Options: client.Options{Name: "a", APIBase: "https://"}}, "base_of_other_kind": {Options: client.Options{Name: "a", APIBase: "ftp://a"}},
	} {
		if _, err := New(o); fault.CodeOf(err) != fault.Config {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Options: client.Options{Name: "a"}}); err != nil {
		t.Errorf("a name is enough: %v", err)
	}
}
