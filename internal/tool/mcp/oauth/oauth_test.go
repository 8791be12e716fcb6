package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

// authority is an authorization server.
type authority struct {
	*httptest.Server
	mu        sync.Mutex
	challenge string
	params    url.Values // of the authorize request
	tokens    []url.Values
	headers   http.Header
	pending   int    // how often a device has to ask again
	refuse    string // the error that token requests get
	rotate    bool   // a refresh gives another refresh token
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	mux := http.NewServeMux()
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.params = r.URL.Query()
		a.challenge = a.params.Get("code_challenge")
		back := a.params.Get("redirect_uri") + "?" + url.Values{"code": {"the code"}, "state": {a.params.Get("state")}}.Encode()
		http.Redirect(w, r, back, http.StatusFound)
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"device_code":"d","user_code":"AB-CD","verification_uri":%q,"expires_in":600,"interval":1}`, a.URL+"/activate")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		form := url.Values{}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			members := map[string]string{}
			if err := json.NewDecoder(r.Body).Decode(&members); err != nil {
				t.Error(err)
			}
			for k, v := range members {
				form.Set(k, v)
			}
		} else if err := r.ParseForm(); err != nil {
			t.Error(err)
		} else {
			form = r.PostForm
		}
		a.tokens, a.headers = append(a.tokens, form), r.Header
		w.Header().Set("Content-Type", "application/json")
		refuse := func(code string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%q,"error_description":"so it is"}`, code)
		}
		switch form.Get("grant_type") {
		case "authorization_code":
			sum := sha256.Sum256([]byte(form.Get("code_verifier")))
			if base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge || form.Get("code") != "the code" {
				refuse("invalid_grant")
				return
			}
		case "urn:ietf:params:oauth:grant-type:device_code":
			if a.pending > 0 {
				a.pending--
				refuse("authorization_pending")
				return
			}
		}
		if a.refuse != "" {
			refuse(a.refuse)
			return
		}
		refresh := "refresh-1"
		if a.rotate {
			refresh = fmt.Sprintf("refresh-%d", len(a.tokens))
		}
		fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":%q,"expires_in":3600,"token_type":"bearer"}`, len(a.tokens), refresh)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) provider(flow oauth.Flow) oauth.Provider {
	return oauth.Provider{
		Name: "c", Flow: flow, ClientID: "id", ClientSecret: "hush", AuthorizeURL: a.URL + "/authorize", TokenURL: a.URL + "/token",
		DeviceURL: a.URL + "/device", Scopes: []string{"s1", "s2"}, ExtraParams: []oauth.Pair{{"prompt", "consent"}},
		Headers: []oauth.Pair{{"X-Beta", "1"}},
	}
}

// user is somebody at a browser.
type user struct {
	visit func(address, code string) error
	code  string
}

func (u user) Visit(address, code string) error { return u.visit(address, code) }

func (u user) Code(context.Context, oauth.Flow) (string, error) { return u.code, nil }

func get(t *testing.T, address string) (status int) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	token, err := oauth.Login(t.Context(), a.provider(oauth.Browser), user{visit: func(address, _ string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		back := u.Query().Get("redirect_uri")
		// What browsers and other pages do beside.
		for path, want := range map[string]int{"/favicon.ico": 404, "/callback?code=x&state=wrong": 400, "/callback": 400} {
			if got := get(t, strings.TrimSuffix(back, "/callback")+path); got != want {
				t.Errorf("%s: %d", path, got)
			}
		}
		if got := get(t, address); got != 200 {
			t.Errorf("the callback: %d", got)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if token.AccessToken != "access-1" || token.RefreshToken != "refresh-1" || time.Until(token.Expiry) < 50*time.Minute {
		t.Errorf("%+v", token)
	}
	for name, want := range map[string]string{"client_id": "id", "response_type": "code", "scope": "s1 s2", "code_challenge_method": "S256", "prompt": "consent"} {
		if got := a.params.Get(name); got != want {
			t.Errorf("%s=%q", name, got)
		}
	}
	if a.headers.Get("X-Beta") != "1" || a.tokens[0].Get("state") != a.params.Get("state") {
		t.Errorf("%v %v", a.headers, a.tokens[0])
	}
}

func TestBrowserSaysNo(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	_, err := oauth.Login(t.Context(), a.provider(oauth.Browser), user{visit: func(address, _ string) error {
		u, _ := url.Parse(address)
		q := url.Values{"state": {u.Query().Get("state")}, "error": {"access_denied"}, "error_description": {"the user said no"}}
		get(t, u.Query().Get("redirect_uri")+"?"+q.Encode())
		return nil
	}})
	if fault.CodeOf(err) != fault.Provider || !strings.Contains(err.Error(), "access_denied the user said no") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = oauth.Login(ctx, a.provider(oauth.Browser), user{visit: func(string, string) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPaste(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p := a.provider(oauth.Paste)
	p.RedirectURI, p.Body = "https://example.com/shown", oauth.JSON
	for _, tt := range []struct{ name, pasted, want string }{
		{"code_and_state", "the code#STATE", ""},
		{"address", "https://example.com/shown?code=the+code&state=STATE", ""},
		{"no_state", "the code", "CODE#STATE"},
		{"other_state", "the code#other", "another login"},
		{"wrong_code", "x#STATE", "invalid_grant so it is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := &user{}
			u.visit = func(address, _ string) error {
				parsed, err := url.Parse(address)
				a.challenge = parsed.Query().Get("code_challenge")
				u.code = strings.ReplaceAll(tt.pasted, "STATE", parsed.Query().Get("state"))
				return err
			}
			token, err := oauth.Login(t.Context(), p, u)
			switch {
			case tt.want == "" && (err != nil || token.AccessToken == ""):
				t.Error(token, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush")):
				t.Error(err)
			}
		})
	}
	if got := a.headers.Get("Content-Type"); got != "application/json" {
		t.Error(got)
	}
}

func TestDevice(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.pending = 1
	var shown string
	token, err := oauth.Login(t.Context(), a.provider(oauth.Device), user{visit: func(address, code string) error {
		shown = address + " " + code
		return nil
	}})
	if err != nil || token.AccessToken != "access-2" || shown != a.URL+"/activate AB-CD" {
		t.Errorf("%v, %v, %s", token, err, shown)
	}
	a.refuse = "access_denied"
	if _, err := oauth.Login(t.Context(), a.provider(oauth.Device), user{visit: func(string, string) error { return nil }}); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Error(err)
	}
}

func TestIncompleteProviders(t *testing.T) {
	t.Parallel()
	claude, _ := oauth.Defaults("claude")
	gemini, _ := oauth.Defaults("gemini")
	for name, p := range map[string]oauth.Provider{
		"client_id": claude, "device_url": {Flow: oauth.Device, ClientID: "x", TokenURL: "x"}, "client_secret": {Flow: oauth.ClientCredentials, ClientID: "x", TokenURL: "x"},
		"redirect_uri": {Flow: oauth.Paste, ClientID: "x", TokenURL: "x", AuthorizeURL: "x"}, "flow": {ClientID: "x", TokenURL: "x"},
	} {
		if err := p.Check(); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gemini.ClientID = "mine"
	if err := gemini.Check(); err != nil {
		t.Error(err)
	}
	if _, ok := oauth.Defaults("openai"); ok {
		t.Error("openai has defaults")
	}
	own := oauth.Provider{Flow: oauth.Device, Scopes: []string{"x"}}.Or(gemini)
	if own.Flow != oauth.Device || own.TokenURL == "" || len(own.Scopes) != 1 || own.ClientID != "mine" {
		t.Errorf("%+v", own)
	}
}

func newSource(t *testing.T, a *authority, flow oauth.Flow, now *time.Time) *oauth.Source {
	t.Helper()
	return &oauth.Source{
		Name: "c", Store: oauth.StoreIn(filepath.Join(t.TempDir(), "tokens"), "c"), Now: func() time.Time { return *now },
		Provider: func() (oauth.Provider, error) { return a.provider(flow), nil },
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.rotate = true
	now := time.Now()
	s := newSource(t, a, oauth.Browser, &now)
	if _, err := s.Token(t.Context()); !strings.Contains(fault.HintOf(err), "loki --authenticate c") {
		t.Error(err)
	}
	if err := s.Store.Save(&oauth2.Token{AccessToken: "first", RefreshToken: "refresh-0", Expiry: now.Add(10 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Store.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "first"}, {8 * time.Minute, "first"}, {9*time.Minute + 30*time.Second, "access-1"}, {10 * time.Minute, "access-1"}, {2 * time.Hour, "access-2"}} {
		now = time.Now().Add(tt.after)
		if got, err := s.Token(t.Context()); err != nil || got != tt.want {
			t.Errorf("after %v: %q, %v", tt.after, got, err)
		}
	}
	if a.tokens[0].Get("refresh_token") != "refresh-0" || a.tokens[1].Get("refresh_token") != "refresh-1" {
		t.Errorf("%v", a.tokens)
	}
	a.refuse = "invalid_grant"
	now = now.Add(5 * time.Hour)
	if _, err := s.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "invalid_grant") || !strings.Contains(fault.HintOf(err), "--authenticate c") {
		t.Error(err)
	}
}

// Sources of other processes have the same store: a token is renewed once.
func TestSourcesRenewOnce(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	now := time.Now()
	first := newSource(t, a, oauth.Browser, &now)
	if err := first.Store.Save(&oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: now.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		s := &oauth.Source{Name: "c", Store: first.Store, Now: first.Now, Provider: first.Provider}
		wg.Go(func() {
			if got, err := s.Token(t.Context()); err != nil || got != "access-1" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if len(a.tokens) != 1 {
		t.Errorf("renewed %d times", len(a.tokens))
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	now := time.Now()
	s := newSource(t, a, oauth.ClientCredentials, &now)
	for i, want := range []string{"access-1", "access-1", "access-2"} {
		if got, err := s.Token(t.Context()); err != nil || got != want {
			t.Errorf("%d: %q, %v", i, got, err)
		}
		if i == 1 {
			now = now.Add(2 * time.Hour)
		}
	}
	if form := a.tokens[0]; form.Get("grant_type") != "client_credentials" || form.Get("client_secret") != "hush" || form.Get("scope") != "s1 s2" {
		t.Errorf("%v", form)
	}
}

func TestADamagedStoreSaysSo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newSource(t, newAuthority(t), oauth.Browser, &now)
	if err := os.MkdirAll(filepath.Dir(s.Store.File), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", "{}"} {
		if err := os.WriteFile(s.Store.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "holds no token") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
