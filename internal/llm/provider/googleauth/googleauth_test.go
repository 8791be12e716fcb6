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
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/googleauth"
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
		w.Header().Set("Content-Type", "application/json")
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
			wantToken(t, newSource(t, googleauth.Options{File: file}), "token-1")
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
			}
			issued, _ := claims["iat"].(float64)
			expires, _ := claims["exp"].(float64)
			if age := time.Since(time.Unix(int64(issued), 0)); age < 0 || age > time.Minute || expires-issued != 3600 {
				t.Errorf("issued at %v, expires at %v", issued, expires)
			}
			delete(claims, "iat")
			delete(claims, "exp")
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
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		answer := roundTripper(func(*http.Request) (*http.Response, error) {
			asked++
			return reply(200, fmt.Sprintf(`{"access_token":"token-%d","expires_in":3600}`, asked)), nil
		})
		file := userFile(&endpoint{Server: &httptest.Server{URL: "http://token.test"}})
		s := newSource(t, googleauth.Options{File: write(t, filepath.Join(t.TempDir(), "adc.json"), file), HTTP: &http.Client{Transport: answer}})
		wantToken(t, s, "token-1")
		time.Sleep(59*time.Minute - time.Second)
		wantToken(t, s, "token-1")
		time.Sleep(time.Second)
		wantToken(t, s, "token-2")
	})
}

// reply returns a response with a body in JSON.
func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// TestWorkloadIdentity follows a token of another provider through Google's security token
// service to the access token of a service account.
func TestWorkloadIdentity(t *testing.T) {
	const subject = "the-other-provider's-token"
	var asked []string
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		asked = append(asked, r.URL.Host)
		switch r.URL.Host {
		case "sts.test":
			if form, err := url.ParseQuery(string(body)); err != nil || form.Get("subject_token") != subject {
				t.Errorf("the exchange asks with %s", body)
			}
			return reply(200, `{"access_token":"federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`), nil
		case "iam.test":
			if got := r.Header.Get("Authorization"); got != "Bearer federated" {
				t.Errorf("authorization %q", got)
			}
			return reply(200, `{"accessToken":"of-the-account","expireTime":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`), nil
		}
		return nil, errors.New("no such host")
	})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "adc.json"), map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "https://sts.test/v1/token",
		"service_account_impersonation_url": "https://iam.test/v1/projects/-/serviceAccounts/me:generateAccessToken",
		"credential_source":                 map[string]any{"file": write(t, filepath.Join(dir, "subject"), []byte(subject))},
	})
	s := newSource(t, googleauth.Options{File: file, HTTP: &http.Client{Transport: server}})
	wantToken(t, s, "of-the-account")
	wantToken(t, s, "of-the-account")
	if diff := cmp.Diff([]string{"sts.test", "iam.test"}, asked); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// impersonation returns credentials of an account that the user of userFile impersonates.
func impersonation(e *endpoint) map[string]any {
	return map[string]any{
		"type": "impersonated_service_account", "source_credentials": userFile(e),
		"service_account_impersonation_url": e.URL + "/v1/projects/-/serviceAccounts/me:generateAccessToken",
	}
}

func TestImpersonation(t *testing.T) {
	e := newEndpoint(t)
	e.body = `{"access_token":"of-the-user","expires_in":3600,"accessToken":"of-the-account","expireTime":"` +
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	wantToken(t, newSource(t, googleauth.Options{File: write(t, filepath.Join(t.TempDir(), "adc.json"), impersonation(e))}), "of-the-account")
	if len(e.requests) != 2 || e.requests[1].Header.Get("Authorization") != "Bearer of-the-user" {
		t.Errorf("%d requests, want one for the user's token and one with it", len(e.requests))
	}
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
		{"other_type", func(*endpoint) any { return map[string]any{"type": "gdch_service_account"} }, 200, "", provider.Authentication, `unsupported type "gdch_service_account"`},
		{"wrong_kind_of_value", func(*endpoint) any {
			return map[string]any{"type": "external_account", "delegates": userSecret}
		}, 200, "", provider.Authentication, "cannot be used"},
		{"half_an_external_account", func(*endpoint) any { return map[string]any{"type": "external_account"} }, 200, "", provider.Authentication, "Audience must be set"},
		{"command_not_allowed", func(*endpoint) any {
			return map[string]any{
				"type": "external_account", "audience": "a", "subject_token_type": "t", "token_url": "https://sts.test",
				"credential_source": map[string]any{"executable": map[string]any{"command": "true"}},
			}
		}, 200, "", provider.Authentication, "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"},
		{"denied", func(e *endpoint) any { return impersonation(e) }, 403, `{"error":{"code":403,"message":"Permission iam.serviceAccounts.getAccessToken denied","status":"PERMISSION_DENIED"}}`, provider.Authentication, "getAccessToken denied"},
		{"half_a_user", func(*endpoint) any { return map[string]any{"type": "authorized_user", "refresh_token": userRefresh} }, 200, "", provider.Authentication, "lack client_id"},
		{"half_an_account", func(*endpoint) any { return account("") }, 200, "", provider.Authentication, "lack client_email or private_key"},
		{"no_pem", func(*endpoint) any { return account(userSecret) }, 200, "", provider.Authentication, "private key should be a PEM"},
		{"no_key", func(*endpoint) any {
			return account(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})))
		}, 200, "", provider.Authentication, "private key should be a PEM"},
		{"not_an_rsa_key", func(*endpoint) any {
			return account(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ecKey})))
		}, 200, "", provider.Authentication, "private key is invalid"},
		{"revoked", func(e *endpoint) any { return userFile(e) }, 400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`, provider.Authentication, "gcloud auth application-default login"},
		{"wrong_client", func(e *endpoint) any { return userFile(e) }, 401, `{"error":"invalid_client","error_description":"Unauthorized"}`, provider.Authentication, "invalid_client: Unauthorized"},
		{"server_in_trouble", func(e *endpoint) any { return userFile(e) }, 503, `{"error":"internal_failure"}`, provider.Transient, ""},
		{"account_in_trouble", func(e *endpoint) any { return accountFile(t, e) }, 503, `{"error":"internal_failure"}`, provider.Transient, ""},
		{"account_unknown", func(e *endpoint) any { return accountFile(t, e) }, 400, `{"error":"invalid_grant","error_description":"Invalid grant: account not found"}`, provider.Authentication, "google rejects the credentials"},
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

func TestCanceled(t *testing.T) {
	e := newEndpoint(t)
	for name, o := range map[string]googleauth.Options{
		"user":            {File: write(t, filepath.Join(t.TempDir(), "user.json"), userFile(e))},
		"service_account": {File: write(t, filepath.Join(t.TempDir(), "account.json"), accountFile(t, e))},
		"impersonation":   {File: write(t, filepath.Join(t.TempDir(), "impersonation.json"), impersonation(e))},
		"metadata":        {MetadataHost: e.host()},
	} {
		t.Run(name+"_before", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := newSource(t, o).Token(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
		})
		if o.File == "" {
			continue
		}
		t.Run(name+"_while_the_server_thinks", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			o.HTTP = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				cancel()
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
			if _, err := newSource(t, o).Token(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
		})
	}
}

// accountFile returns credentials of a service account.
func accountFile(t *testing.T, e *endpoint) map[string]any {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"type": "service_account", "client_email": "me@project.iam.gserviceaccount.com", "token_uri": e.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}
}

// FuzzCredentials checks that no file makes the source panic or tell what is in it.
func FuzzCredentials(f *testing.F) {
	f.Add([]byte(`{"type":"authorized_user","client_id":"a","client_secret":"sesame-sesame","refresh_token":"r","token_uri":"http://127.0.0.1:1/"}`))
	f.Add([]byte(`{"type":"service_account","client_email":"a","private_key":"-----BEGIN PRIVATE KEY-----\nc2VzYW1l\n-----END PRIVATE KEY-----\n"}`))
	f.Add([]byte(`{"type":"external_account","audience":"a","subject_token_type":"t","token_url":"https://127.0.0.1:1/","client_secret":"sesame-sesame","credential_source":{"url":"http://127.0.0.1:1/"}}`))
	f.Add([]byte(`{"type":"impersonated_service_account","service_account_impersonation_url":"http://127.0.0.1:1/","source_credentials":{"type":"authorized_user","refresh_token":"sesame-sesame"}}`))
	f.Add([]byte(`{"client_id":"a","client_secret":"sesame-sesame","refresh_token":"r"}`))
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
