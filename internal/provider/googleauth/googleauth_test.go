package googleauth_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/provider"
	"loki/internal/provider/googleauth"
)

// endpoint is a token endpoint and a metadata server.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	body     string
	lifetime int
	requests []*http.Request // their forms are parsed
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusOK, lifetime: 3600}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if err := r.ParseForm(); err != nil {
			t.Errorf("form: %v", err)
		}
		e.requests = append(e.requests, r)
		body := e.body
		if body == "" {
			body = fmt.Sprintf(`{"access_token":"token-%d","expires_in":%d,"token_type":"Bearer"}`, len(e.requests), e.lifetime)
		}
		w.WriteHeader(e.status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) host() string { return strings.TrimPrefix(e.URL, "http://") }

const userSecret, userRefresh = "GOCSPX-client-secret", "1//refresh-token-text"

func userFile(e *endpoint) map[string]any {
	return map[string]any{
		"type": "authorized_user", "client_id": "id.apps.googleusercontent.com", "client_secret": userSecret, "refresh_token": userRefresh,
		"token_uri": e.URL + "/token",
	}
}

func write(t *testing.T, file string, v any) string {
	t.Helper()
	data, ok := v.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// environment returns variables that no real one adds to.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// nowhere is an address where nothing listens.
const nowhere = "127.0.0.1:1"

func newSource(t *testing.T, o googleauth.Options) *googleauth.Source {
	t.Helper()
	o.Client = "vertexai"
	if o.Getenv == nil {
		o.Getenv = environment(nil)
	}
	if o.MetadataHost == "" {
		o.MetadataHost = nowhere
	}
	s, err := googleauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantToken(t *testing.T, s *googleauth.Source, want string) {
	t.Helper()
	if got, err := s.Token(t.Context()); err != nil || got != want {
		t.Errorf("token = %q, error %v, want %q", got, err, want)
	}
}

func TestUser(t *testing.T) {
	e := newEndpoint(t)
	wantToken(t, newSource(t, googleauth.Options{File: write(t, filepath.Join(t.TempDir(), "adc.json"), userFile(e))}), "token-1")
	form := e.requests[0].PostForm
	for key, want := range map[string]string{
		"grant_type": "refresh_token", "client_id": "id.apps.googleusercontent.com", "client_secret": userSecret, "refresh_token": userRefresh,
	} {
		if form.Get(key) != want {
			t.Errorf("%s = %q, want %q", key, form.Get(key), want)
		}
	}
}

func TestServiceAccount(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"pkcs8": {Type: "PRIVATE KEY", Bytes: pkcs8},
		"pkcs1": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			file := write(t, filepath.Join(t.TempDir(), "sa.json"), map[string]any{
				"type": "service_account", "client_email": "me@project.iam.gserviceaccount.com", "private_key_id": "key-1",
				"private_key": string(pem.EncodeToMemory(block)), "token_uri": e.URL + "/token",
			})
			now := time.Unix(1_800_000_000, 0)
			wantToken(t, newSource(t, googleauth.Options{File: file, Now: func() time.Time { return now }}), "token-1")
			form := e.requests[0].PostForm
			if got := form.Get("grant_type"); got != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
				t.Errorf("grant_type = %q", got)
			}
			header, claims := verified(t, form.Get("assertion"), &key.PublicKey)
			if header["alg"] != "RS256" || header["kid"] != "key-1" {
				t.Errorf("header = %v", header)
			}
			want := map[string]any{
				"iss": "me@project.iam.gserviceaccount.com", "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": e.URL + "/token",
				"iat": float64(now.Unix()), "exp": float64(now.Unix() + 3600),
			}
			if !maps.Equal(claims, want) {
				t.Errorf("claims = %v, want %v", claims, want)
			}
		})
	}
}

// verified checks the signature of a JSON web token and returns its contents.
func verified(t *testing.T, jwt string, key *rsa.PublicKey) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		t.Fatalf("assertion %q", jwt)
	}
	var decoded [3][]byte
	for i, p := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.DecodeString(p); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decoded[2]); err != nil {
		t.Error(err)
	}
	if err := errors.Join(json.Unmarshal(decoded[0], &header), json.Unmarshal(decoded[1], &claims)); err != nil {
		t.Fatal(err)
	}
	return header, claims
}

func TestWhereCredentialsAreFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string // that exist
		o     googleauth.Options
		env   map[string]string // DIR stands for a directory
		want  string            // the client_id of the file, or metadata
	}{
		{"named_first", []string{"named", "var", "gcloud/application_default_credentials.json"}, googleauth.Options{File: "DIR/named"}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "DIR/var", "CLOUDSDK_CONFIG": "DIR/gcloud"}, "named"},
		{"variable", []string{"var", "gcloud/application_default_credentials.json"}, googleauth.Options{}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "DIR/var", "CLOUDSDK_CONFIG": "DIR/gcloud"}, "var"},
		{"gcloud_directory", []string{"gcloud/application_default_credentials.json", ".config/gcloud/application_default_credentials.json"}, googleauth.Options{}, map[string]string{"CLOUDSDK_CONFIG": "DIR/gcloud", "HOME": "DIR"}, "gcloud/application_default_credentials.json"},
		{"home", []string{".config/gcloud/application_default_credentials.json"}, googleauth.Options{}, map[string]string{"HOME": "DIR"}, ".config/gcloud/application_default_credentials.json"},
		{"metadata_server", nil, googleauth.Options{}, map[string]string{"HOME": "DIR"}, "metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, dir := newEndpoint(t), t.TempDir()
			for _, name := range tt.files {
				content := userFile(e)
				content["client_id"] = name
				write(t, filepath.Join(dir, name), content)
			}
			env := make(map[string]string)
			for name, value := range tt.env {
				env[name] = strings.ReplaceAll(value, "DIR", dir)
			}
			tt.o.File = strings.ReplaceAll(tt.o.File, "DIR", dir)
			tt.o.Getenv, tt.o.MetadataHost = environment(env), e.host()
			wantToken(t, newSource(t, tt.o), "token-1")
			r := e.requests[0]
			got := r.PostForm.Get("client_id")
			if r.Header.Get("Metadata-Flavor") == "Google" && r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" {
				got = "metadata"
			}
			if got != tt.want {
				t.Errorf("credentials of %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTokenIsKeptUntilAMinuteBeforeItExpires(t *testing.T) {
	e := newEndpoint(t)
	now := time.Unix(1_800_000_000, 0)
	s := newSource(t, googleauth.Options{File: write(t, filepath.Join(t.TempDir(), "adc.json"), userFile(e)), Now: func() time.Time { return now }})
	wantToken(t, s, "token-1")
	now = now.Add(59*time.Minute - time.Second)
	wantToken(t, s, "token-1")
	now = now.Add(time.Second)
	wantToken(t, s, "token-2")
}

func TestCallersShareOneRequest(t *testing.T) {
	e := newEndpoint(t)
	s := newSource(t, googleauth.Options{File: write(t, filepath.Join(t.TempDir(), "adc.json"), userFile(e))})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { wantToken(t, s, "token-1") })
	}
	wg.Wait()
	if len(e.requests) != 1 {
		t.Errorf("%d requests, want 1", len(e.requests))
	}
}

func TestFailures(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	account := func(key string) map[string]any {
		return map[string]any{"type": "service_account", "client_email": "me", "private_key": key}
	}
	for _, tt := range []struct {
		name   string
		file   func(e *endpoint) any // nil means none
		status int
		body   string
		kind   provider.ErrorKind
		want   string
	}{
		{"no_file", nil, 200, "", provider.Authentication, "cannot be read"},
		{"no_json", func(*endpoint) any { return []byte("client_secret: " + userSecret) }, 200, "", provider.Authentication, "not a JSON object"},
		{"empty", func(*endpoint) any { return map[string]any{} }, 200, "", provider.Authentication, "holds no google credentials"},
		{"other_type", func(*endpoint) any { return map[string]any{"type": "external_account"} }, 200, "", provider.Authentication, `unsupported type "external_account"`},
		{"half_a_user", func(*endpoint) any { return map[string]any{"type": "authorized_user", "refresh_token": userRefresh} }, 200, "", provider.Authentication, "lack client_id"},
		{"half_an_account", func(*endpoint) any { return account("") }, 200, "", provider.Authentication, "lack client_email or private_key"},
		{"no_pem", func(*endpoint) any { return account(userSecret) }, 200, "", provider.Authentication, "not in PEM format"},
		{"no_key", func(*endpoint) any {
			return account(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})))
		}, 200, "", provider.Authentication, "neither PKCS #8"},
		{"no_rsa_key", func(*endpoint) any {
			return account(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ecKey})))
		}, 200, "", provider.Authentication, "not an RSA key"},
		{"revoked", func(e *endpoint) any { return userFile(e) }, 400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`, provider.Authentication, "gcloud auth application-default login"},
		{"wrong_client", func(e *endpoint) any { return userFile(e) }, 401, `{"error":"invalid_client","error_description":"Unauthorized"}`, provider.Authentication, "invalid_client: Unauthorized"},
		{"server_in_trouble", func(e *endpoint) any { return userFile(e) }, 503, `{"error":"internal_failure"}`, provider.Transient, ""},
		{"no_token", func(e *endpoint) any { return userFile(e) }, 200, `{"id_token":"` + userSecret + `"}`, provider.BadReply, "holds no access token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEndpoint(t)
			e.status, e.body = tt.status, tt.body
			file := filepath.Join(t.TempDir(), "adc.json")
			if tt.file != nil {
				write(t, file, tt.file(e))
			}
			_, err := newSource(t, googleauth.Options{File: file}).Token(t.Context())
			failed, ok := errors.AsType[*provider.Error](err)
			if !ok || failed.Kind != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one of kind %s with %q", err, tt.kind, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), userSecret) || strings.Contains(err.Error(), userRefresh)) {
				t.Errorf("error %q holds a secret", err)
			}
		})
	}
}

func TestNoCredentialsAnywhere(t *testing.T) {
	_, err := newSource(t, googleauth.Options{Getenv: environment(map[string]string{"HOME": t.TempDir()})}).Token(t.Context())
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Kind != provider.Authentication || !strings.Contains(err.Error(), "adc_file") {
		t.Errorf("error = %v", err)
	}
}

func TestMachineWithoutAccount(t *testing.T) {
	e := newEndpoint(t)
	e.status, e.body = http.StatusNotFound, "<html>not found</html>"
	_, err := newSource(t, googleauth.Options{MetadataHost: e.host()}).Token(t.Context())
	if failed, ok := errors.AsType[*provider.Error](err); !ok || failed.Kind != provider.Authentication || failed.Status != http.StatusNotFound {
		t.Errorf("error = %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := newEndpoint(t)
	for name, o := range map[string]googleauth.Options{
		"file": {File: write(t, filepath.Join(t.TempDir(), "adc.json"), userFile(e))}, "metadata": {MetadataHost: e.host()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newSource(t, o).Token(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
		})
	}
}

// FuzzCredentials checks that no file makes the source panic or tell what is in it.
func FuzzCredentials(f *testing.F) {
	f.Add([]byte(`{"type":"authorized_user","client_id":"a","client_secret":"sesame-sesame","refresh_token":"r","token_uri":"http://127.0.0.1:1/"}`))
	f.Add([]byte(`{"type":"service_account","client_email":"a","private_key":"-----BEGIN PRIVATE KEY-----\nc2VzYW1l\n-----END PRIVATE KEY-----\n"}`))
	f.Add([]byte(`{"type":"external_account"}`))
	f.Add([]byte(`sesame-sesame`))
	f.Add([]byte(`[]`))
	refuse := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") })
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "adc.json")
		write(t, name, data)
		token, err := newSource(t, googleauth.Options{File: name, HTTP: &http.Client{Transport: refuse}}).Token(t.Context())
		if err == nil || token != "" {
			t.Errorf("token %q from a server that is not there", token)
		}
		var file struct {
			ClientSecret string `json:"client_secret"`
		}
		if json.Unmarshal(data, &file) != nil || bytes.Count(data, []byte(file.ClientSecret)) != 1 {
			return // none, or a text that stands elsewhere, too
		}
		if len(file.ClientSecret) > 12 && strings.Contains(err.Error(), file.ClientSecret) {
			t.Errorf("error %q holds a secret", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
