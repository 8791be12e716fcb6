package bedrock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/provider"
)

// issuer is a server of AWS's that issues credentials: the security token service at /,
// a container's service at /container, and a machine's at its usual paths.
type issuer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // the actions and paths
	refuse bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	s := &issuer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		asked := r.URL.Path
		if asked == "/" {
			asked = r.FormValue("Action")
		}
		s.asked = append(s.asked, asked)
		if s.refuse {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized to assume the role</Message></Error></ErrorResponse>`)
			return
		}
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		switch asked {
		case "AssumeRole", "AssumeRoleWithWebIdentity":
			fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult><Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>rs</SecretAccessKey><SessionToken>rt</SessionToken><Expiration>%[2]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, asked, until)
		case "/container", "/latest/meta-data/iam/security-credentials/me":
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"LOCAL","SecretAccessKey":"ls","Token":"lt","Expiration":%q}`, until)
		case "/latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "me")
		case "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
			fmt.Fprint(w, "session")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// want fails the test unless the source gives these credentials and this region.
func want(t *testing.T, s *source, key, region string) {
	t.Helper()
	a, err := s.resolve(t.Context())
	if err != nil || a.keys.AccessKeyID != key || a.region != region {
		t.Errorf("key %q, region %q, error %v, want %q and %q", a.keys.AccessKeyID, a.region, err, key, region)
	}
}

// wantFailure fails the test unless the source has an error of this kind with this text.
func wantFailure(t *testing.T, s *source, kind provider.ErrorKind, text string) {
	t.Helper()
	_, err := s.resolve(t.Context())
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one of kind %s with %q", err, kind, text)
	}
}

func TestRole(t *testing.T) {
	isolate(t)
	server, home := newIssuer(t), t.TempDir()
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	writeFile(t, home, "config", "[profile work]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/me\nsource_profile = base\n")
	writeFile(t, home, "credentials", "[base]\naws_access_key_id = BASE\naws_secret_access_key = bs\n")
	s := newSource(home, map[string]string{"AWS_PROFILE": "work"})
	want(t, s, "ROLE", "eu-west-1")
	want(t, s, "ROLE", "eu-west-1")
	if got := strings.Join(server.asked, " "); got != "AssumeRole" {
		t.Errorf("asked %q, want once for the role", got)
	}
	server.refuse = true
	wantFailure(t, newSource(home, map[string]string{"AWS_PROFILE": "work"}), provider.Authentication, "not authorized to assume the role")
	server.Close()
	wantFailure(t, newSource(home, map[string]string{"AWS_PROFILE": "work"}), provider.Transient, "connection refused")
}

func TestWebIdentity(t *testing.T) {
	isolate(t)
	server, home := newIssuer(t), t.TempDir()
	writeFile(t, home, "token", "a-token")
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/me")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", filepath.Join(home, ".aws", "token"))
	want(t, newSource(home, map[string]string{"AWS_REGION": "eu-west-1"}), "ROLE", "eu-west-1")
	if got := strings.Join(server.asked, " "); got != "AssumeRoleWithWebIdentity" {
		t.Errorf("asked %q", got)
	}
}

func TestContainer(t *testing.T) {
	isolate(t)
	server := newIssuer(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL+"/container")
	want(t, newSource(t.TempDir(), map[string]string{"AWS_REGION": "eu-west-1"}), "LOCAL", "eu-west-1")
}

func TestMachine(t *testing.T) {
	isolate(t)
	server := newIssuer(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	env := map[string]string{"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.URL}
	want(t, newSource(t.TempDir(), env), "LOCAL", "eu-west-1")
	env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1"
	wantFailure(t, newSource(t.TempDir(), env), provider.Authentication, "has no credentials: set AWS_1_ACCESS_KEY_ID")
}

func TestCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	isolate(t)
	home := t.TempDir()
	command := func(text string) {
		t.Helper()
		writeFile(t, home, "config", "[default]\nregion = eu-west-1\ncredential_process = "+text+"\n")
	}
	s := newSource(home, nil)
	command(`echo '{"Version":1,"AccessKeyId":"ONE","SecretAccessKey":"s"}'`)
	want(t, s, "ONE", "eu-west-1")
	command(`echo '{"Version":1,"AccessKeyId":"TWO","SecretAccessKey":"s"}'`)
	want(t, s, "TWO", "eu-west-1") // they do not expire: the file counts
	command(`exit 3`)
	wantFailure(t, s, provider.Authentication, "credential_process: exit status 3")
	command(`echo sesame-sesame`)
	wantFailure(t, s, provider.Authentication, "credential_process: invalid character")
	if _, err := s.resolve(t.Context()); strings.Contains(err.Error(), "sesame") {
		t.Errorf("error %q holds what the command printed", err)
	}
}

func TestExpiredLogin(t *testing.T) {
	isolate(t)
	home := t.TempDir()
	t.Setenv("HOME", home) // where the SDK looks for the tokens of logins
	t.Setenv("USERPROFILE", home)
	writeFile(t, home, "config", "[profile work]\nregion = eu-west-1\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n[sso-session s]\nsso_region = eu-west-1\nsso_start_url = https://sso.test/start\n")
	wantFailure(t, newSource(home, map[string]string{"AWS_PROFILE": "work"}), provider.Authentication, `run "aws sso login --profile work"`)
}

func TestKeysOfAFileMayChange(t *testing.T) {
	isolate(t)
	home := t.TempDir()
	s := newSource(home, map[string]string{"AWS_REGION": "eu-west-1"})
	for _, key := range []string{"FIRST", "SECOND"} {
		writeFile(t, home, "credentials", "[default]\naws_access_key_id = "+key+"\naws_secret_access_key = s\n")
		want(t, s, key, "eu-west-1")
	}
}

func TestCanceledChain(t *testing.T) {
	isolate(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	if _, err := newSource(t.TempDir(), map[string]string{"AWS_REGION": "eu-west-1"}).resolve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	server.CloseClientConnections() // the SDK lets the request finish
}

func BenchmarkKeysOfAFile(b *testing.B) {
	isolate(b)
	home := b.TempDir()
	writeFile(b, home, "credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = s\n")
	s := newSource(home, map[string]string{"AWS_REGION": "eu-west-1"})
	for b.Loop() {
		if _, err := s.resolve(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
