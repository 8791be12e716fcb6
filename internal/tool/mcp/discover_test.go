package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/tool/mcp"
	"loki/internal/tool/mcp/oauth"
)

// shop is an MCP server at /mcp that asks for a token, and its authorization servers.
type shop struct {
	*httptest.Server
	mu       sync.Mutex
	scope    string // that a token has to have; any without it
	seen     []url.Values
	wishes   []map[string]any // registrations
	requests []url.Values     // of authorizations
	refusals int

	resource, authority map[string]any // metadata; nil for none
	places              []string       // where the metadata of the resource is
	challenge           string         // after Bearer
	iss                 string         // in the answer of the browser
	openID              bool
}

func newShop(t *testing.T) *shop {
	t.Helper()
	g := &shop{}
	mux := http.NewServeMux()
	server := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "hello"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello, you"}}}, nil, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		scope, challenge := g.scope, g.challenge
		g.mu.Unlock()
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer access ")
		switch {
		case !ok:
			w.Header().Set("WWW-Authenticate", "Bearer "+challenge)
			http.Error(w, "the key of Ann is over", http.StatusUnauthorized)
		case scope != "" && !slices.Contains(strings.Fields(token), scope):
			g.mu.Lock()
			g.refusals++
			g.mu.Unlock()
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`", `+challenge)
			w.WriteHeader(http.StatusForbidden)
		default:
			handler.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var wish map[string]any
		_ = json.NewDecoder(r.Body).Decode(&wish)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.wishes = append(g.wishes, wish)
		w.WriteHeader(http.StatusCreated)
		method, _ := wish["token_endpoint_auth_method"].(string)
		reply := map[string]any{"client_id": fmt.Sprintf("registered %d", len(g.wishes)), "token_endpoint_auth_method": method}
		if method != "none" {
			reply["client_secret"] = "hush"
		}
		_ = json.NewEncoder(w).Encode(reply)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.requests = append(g.requests, q)
		back := url.Values{"code": {"a code"}, "state": {q.Get("state")}}
		if g.iss != "" {
			back.Set("iss", g.iss)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"device_code":"d","user_code":"AB-CD","verification_uri":%q,"expires_in":600,"interval":1}`, g.URL+"/activate")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		g.mu.Lock()
		defer g.mu.Unlock()
		if user, secret, ok := r.BasicAuth(); ok {
			r.Form.Set("basic", user+"/"+secret)
		}
		g.seen = append(g.seen, r.Form)
		scope := ""
		if len(g.requests) > 0 {
			scope = g.requests[len(g.requests)-1].Get("scope")
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"access %s","refresh_token":"refresh-%d","expires_in":3600,"token_type":"bearer"}`, scope, len(g.seen))
	})
	mux.HandleFunc("/.well-known/", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		of := "/.well-known/oauth-authorization-server"
		if g.openID {
			of = "/.well-known/openid-configuration"
		}
		switch {
		case g.resource != nil && slices.Contains(g.places, r.URL.Path):
			_ = json.NewEncoder(w).Encode(g.resource)
		case g.authority != nil && r.URL.Path == of:
			_ = json.NewEncoder(w).Encode(g.authority)
		default:
			http.NotFound(w, r)
		}
	})
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	g.places = []string{"/.well-known/oauth-protected-resource/mcp"}
	g.challenge = `resource_metadata="` + g.URL + g.places[0] + `"`
	g.resource = map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{g.URL}, "scopes_supported": []string{"read"}}
	g.authority = map[string]any{
		"issuer": g.URL, "authorization_endpoint": g.URL + "/authorize", "token_endpoint": g.URL + "/token", "registration_endpoint": g.URL + "/register",
		"code_challenge_methods_supported": []string{"S256"},
	}
	return g
}

// browser is a user whose browser opens addresses at once.
type browser struct {
	t       *testing.T
	visited func(address, code string) string // returns what is pasted
	paste   chan string
}

func newBrowser(t *testing.T) *browser { return &browser{t: t, paste: make(chan string, 1)} }

func (b *browser) Visit(address, code string) error {
	if b.visited != nil {
		b.paste <- b.visited(address, code)
		return nil
	}
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (b *browser) Code(ctx context.Context, _ oauth.Flow) (string, error) {
	select {
	case text := <-b.paste:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// logins returns the logins of one server called shop, whose entry has these settings besides the address.
func logins(t *testing.T, g *shop, dir string, settings map[string]any) *mcp.Logins {
	t.Helper()
	entry := map[string]any{"url": g.URL + "/mcp"}
	for k, v := range settings {
		entry[k] = v
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"shop": entry}})
	if err != nil {
		t.Fatal(err)
	}
	file, err := mcp.Parse("mcp.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return &mcp.Logins{File: file, Dir: dir, Seen: func(string) func(*oauth2.Token) { return func(*oauth2.Token) {} }}
}

// TestDiscovery logs in to servers that say where tokens come from, each in another way, or wrongly.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		change   func(g *shop)
		settings map[string]any
		want     string // in the error; empty for a token
		client   string // that asks for the token; empty for the first that is registered
	}{
		{name: "challenge", change: func(*shop) {}},
		{name: "no_challenge", change: func(g *shop) { g.challenge = `realm="x"` }},
		{name: "at_the_root", change: func(g *shop) {
			g.challenge, g.places = `realm="x"`, []string{"/.well-known/oauth-protected-resource"}
			g.resource["resource"] = g.URL
		}},
		{name: "no_metadata_of_the_resource", change: func(g *shop) { g.challenge, g.resource = `realm="x"`, nil }},
		{name: "own_issuer_with_a_path", change: func(g *shop) {
			g.challenge, g.resource = `realm="x"`, nil
			g.authority["issuer"] = g.URL + "/oauth"
		}},
		{name: "own_issuer_elsewhere", change: func(g *shop) {
			g.challenge, g.resource = `realm="x"`, nil
			g.authority["issuer"] = g.URL + ".example.com/oauth"
		}, want: "is about the issuer"},
		{name: "no_metadata", change: func(g *shop) { g.challenge, g.resource, g.authority = `realm="x"`, nil, nil }, want: "has no metadata"},
		{name: "announced_metadata_missing", change: func(g *shop) { g.resource = nil }, want: "there is nothing at"},
		{name: "two_issuers", change: func(g *shop) {
			g.resource["authorization_servers"] = []string{g.URL + "/broken", g.URL}
		}},
		{name: "wrong_resource", change: func(g *shop) { g.resource["resource"] = g.URL + "/other" }, want: "and not about this server"},
		{name: "resource_of_another_host", change: func(g *shop) { g.resource["resource"] = "https://bank.example.com/mcp" }, want: "and not about this server"},
		{name: "prefix_of_a_name", change: func(g *shop) { g.resource["resource"] = g.URL + "/mc" }, want: "and not about this server"},
		{name: "wrong_issuer", change: func(g *shop) { g.authority["issuer"] = "https://other.example.com" }, want: "is about the issuer"},
		{name: "no_pkce", change: func(g *shop) { delete(g.authority, "code_challenge_methods_supported") }, want: "PKCE"},
		{name: "plain_pkce", change: func(g *shop) { g.authority["code_challenge_methods_supported"] = []string{"plain"} }, want: "PKCE"},
		{name: "openid", change: func(g *shop) { g.openID = true }},
		{name: "iss", change: func(g *shop) {
			g.authority["authorization_response_iss_parameter_supported"], g.iss = true, g.URL
		}},
		{name: "wrong_iss", change: func(g *shop) { g.iss = "https://other.example.com" }, want: "the answer of the browser is not that of"},
		{name: "no_iss", change: func(g *shop) { g.authority["authorization_response_iss_parameter_supported"] = true }, want: "the answer of the browser is not that of"},
		{name: "no_registration", change: func(g *shop) { delete(g.authority, "registration_endpoint") }, want: "takes no registration"},
		{
			name: "metadata_document", change: func(g *shop) { g.authority["client_id_metadata_document_supported"] = true },
			settings: map[string]any{"client_metadata_url": "https://me.example.com/loki.json"}, client: "https://me.example.com/loki.json",
		},
		{name: "own_client", change: func(g *shop) { delete(g.authority, "registration_endpoint") }, settings: map[string]any{"client_id": "mine"}, client: "mine"},
		{name: "basic", change: func(g *shop) {
			g.authority["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
		}, client: "registered+1/hush"},
		{name: "insecure_endpoint", change: func(g *shop) { g.authority["token_endpoint"] = "http://mcp.example.com/token" }, want: "https://"},
		{name: "not_json", change: func(g *shop) { g.resource["resource"] = []int{1} }, want: "is not JSON"},
		{name: "endless", change: func(g *shop) { g.authority["issuer"] = strings.Repeat("x", 2<<20) }, want: "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newShop(t)
			tt.change(g)
			settings := map[string]any{}
			if tt.settings != nil {
				settings["oauth"] = tt.settings
			}
			l := logins(t, g, t.TempDir(), settings)
			err := l.Login(t.Context(), "shop", newBrowser(t), nil)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error()+fault.HintOf(err), tt.want) {
					t.Fatalf("error %v", err)
				}
				if token, err := l.Token(t.Context(), "shop"); token != "" || err != nil {
					t.Errorf("the token %q, %v", token, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err, fault.HintOf(err))
			}
			if token, err := l.Token(t.Context(), "shop"); !strings.HasPrefix(token, "access") || err != nil {
				t.Errorf("the token %q, %v", token, err)
			}
			sent, asked := g.seen[0], g.requests[0]
			resource := g.URL + "/mcp"
			if g.resource != nil {
				resource, _ = g.resource["resource"].(string)
				if asked.Get("scope") != "read" {
					t.Errorf("scope %q", asked.Get("scope"))
				}
			}
			client := sent.Get("client_id")
			if basic := sent.Get("basic"); basic != "" {
				client = basic
			}
			if want := tt.client; want == "" && client != "registered 1" || want != "" && client != want {
				t.Errorf("the client %q", client)
			}
			if asked.Get("resource") != resource || sent.Get("resource") != resource || asked.Get("code_challenge_method") != "S256" || sent.Get("code_verifier") == "" {
				t.Errorf("asked %v, sent %v", asked, sent)
			}
			if len(g.wishes) > 0 && (g.wishes[0]["application_type"] != "native" || !strings.Contains(fmt.Sprint(g.wishes[0]["redirect_uris"]), asked.Get("redirect_uri"))) {
				t.Errorf("registered %v, used %q", g.wishes[0], asked.Get("redirect_uri"))
			}
		})
	}
}

// TestOwnSecret: the secret of a client of the user is sent, also to renew, and is in no file.
func TestOwnSecret(t *testing.T) {
	t.Parallel()
	g, dir := newShop(t), t.TempDir()
	l := logins(t, g, dir, map[string]any{"oauth": map[string]any{"client_id": "mine", "client_secret": "my-hush"}})
	if err := l.Login(t.Context(), "shop", newBrowser(t), nil); err != nil {
		t.Fatal(err)
	}
	token, err := l.Token(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	l.Reject(t.Context(), "shop", token)
	if _, err := l.Token(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if len(g.seen) != 2 {
		t.Fatalf("%d requests for tokens", len(g.seen))
	}
	for _, sent := range g.seen {
		if sent.Get("client_id") != "mine" || sent.Get("client_secret") != "my-hush" {
			t.Errorf("sent %v", sent)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "my-hush") {
			t.Errorf("%s: %s, %v", file, data, err)
		}
	}
}

// TestNoDiscovery: a server with a key of its own, or oauth false, does not log in.
func TestNoDiscovery(t *testing.T) {
	t.Parallel()
	g := newShop(t)
	for name, settings := range map[string]map[string]any{
		"false": {"oauth": false}, "key": {"headers": map[string]string{"authorization": "Bearer x"}},
	} {
		err := logins(t, g, t.TempDir(), settings).Login(t.Context(), "shop", newBrowser(t), nil)
		if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), "does not log in") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLoginsAreKept: a second login uses the registration, the tokens belong to an issuer and a resource, and all files are private.
func TestLoginsAreKept(t *testing.T) {
	t.Parallel()
	g, dir := newShop(t), t.TempDir()
	for range 2 {
		if err := logins(t, g, dir, nil).Login(t.Context(), "shop", newBrowser(t), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.wishes) != 1 {
		t.Errorf("registered %d times", len(g.wishes))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	other := newShop(t)
	if token, err := logins(t, other, dir, nil).Token(t.Context(), "shop"); token != "" || err != nil {
		t.Errorf("another server gets the token %q, %v", token, err)
	}
}

// TestPastedRedirect: a browser on another machine ends at an address that the user pastes.
func TestPastedRedirect(t *testing.T) {
	t.Parallel()
	g := newShop(t)
	b := newBrowser(t)
	b.visited = func(address, _ string) string {
		u, _ := url.Parse(address)
		return u.Query().Get("redirect_uri") + "?code=c&state=" + u.Query().Get("state")
	}
	if err := logins(t, g, t.TempDir(), nil).Login(t.Context(), "shop", b, nil); err != nil {
		t.Fatal(err)
	}
	b.visited = func(string, string) string { return "http://127.0.0.1/callback?code=c&state=of-another-one" }
	if err := logins(t, g, t.TempDir(), nil).Login(t.Context(), "shop", b, nil); err == nil || !strings.Contains(err.Error(), "another login") {
		t.Error(err)
	}
}

// TestAnnouncedDevice: a server announces the device flow.
func TestAnnouncedDevice(t *testing.T) {
	t.Parallel()
	g := newShop(t)
	g.authority["device_authorization_endpoint"] = g.URL + "/device"
	b := newBrowser(t)
	shown := ""
	b.visited = func(_, code string) string { shown = code; return "" }
	if err := logins(t, g, t.TempDir(), map[string]any{"oauth": map[string]any{"flow": "device"}}).Login(t.Context(), "shop", b, nil); err != nil {
		t.Fatal(err)
	}
	if shown != "AB-CD" || g.seen[0].Get("resource") != g.URL+"/mcp" {
		t.Errorf("%q, %v", shown, g.seen)
	}
}

// signedIn returns a scope whose user logs in when a server wants it.
func signedIn(t *testing.T, l *mcp.Logins, asked *[]oauth.Challenge, failure error) *mcp.Scope {
	t.Helper()
	p := pool(t, func(o *mcp.Options) {
		o.Tokens = l
		o.SignIn = func(ctx context.Context, _ ask.Asker, s mcp.Server, c oauth.Challenge, _ string) error {
			*asked = append(*asked, c)
			if failure != nil {
				return failure
			}
			return l.Login(ctx, s.ID, newBrowser(t), &c)
		}
	})
	scope := p.Scope(l.File.Servers, mcp.ScopeOptions{})
	t.Cleanup(scope.Close)
	return scope
}

// TestLoginAtRefusal: a server that wants a login gets it when it is first used, and one that wants another scope gets that besides the first.
func TestLoginAtRefusal(t *testing.T) {
	t.Parallel()
	g := newShop(t)
	l := logins(t, g, t.TempDir(), nil)
	var asked []oauth.Challenge
	scope := signedIn(t, l, &asked, nil)
	if tools, err := scope.List(t.Context(), "shop"); err != nil || len(tools) != 1 {
		t.Fatal(tools, err)
	}
	g.mu.Lock()
	g.scope = "write"
	g.mu.Unlock()
	for range 2 {
		if got, err := call(t.Context(), scope, "invoke_shop", `{"tool": "hello"}`); err != nil || got != "hello, you" {
			t.Fatal(got, err)
		}
	}
	if len(asked) != 2 || asked[0].Narrow || !asked[1].Narrow || g.requests[1].Get("scope") != "read write" {
		t.Errorf("asked %+v, requests %v", asked, g.requests)
	}
}

// TestNoLogin: the reason why there is no login is the error, with what the server says, and the server is not asked again in the same call.
func TestNoLogin(t *testing.T) {
	t.Parallel()
	g := newShop(t)
	var asked []oauth.Challenge
	scope := signedIn(t, logins(t, g, t.TempDir(), nil), &asked, fault.New(fault.Config, "no user"))
	if err := scope.Connect(t.Context()); !strings.Contains(fmt.Sprint(err), "no user: HTTP 401 Unauthorized: the key of Ann is over") || len(asked) != 1 {
		t.Errorf("%v, asked %d times", err, len(asked))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen)+len(g.wishes) != 0 {
		t.Errorf("%v, %v", g.seen, g.wishes)
	}
}

// refreshing is the variable by which a test is a process that needs the token of a directory.
const refreshing = "LOKI_TEST_REFRESH"

// TestTwoProcessesRefreshOnce: processes that find an expired token renew it once, for the resource that it is for.
func TestTwoProcessesRefreshOnce(t *testing.T) {
	t.Parallel()
	if place := os.Getenv(refreshing); place != "" {
		address, dir, _ := strings.Cut(place, " ")
		l := logins(t, &shop{Server: &httptest.Server{URL: address}}, dir, nil)
		token, err := l.Token(t.Context(), "shop")
		fmt.Printf("token=%s,%v\n", token, err)
		return
	}
	g, dir := newShop(t), t.TempDir()
	if err := logins(t, g, dir, nil).Login(t.Context(), "shop", newBrowser(t), nil); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_tokens.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := (oauth.Store{File: files[0]}).Save(&oauth2.Token{AccessToken: "access old", RefreshToken: "r", Expiry: time.Now().Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcessesRefreshOnce$", "-test.v")
			cmd.Env = append(os.Environ(), refreshing+"="+g.URL+" "+dir)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "token=access read,<nil>") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.seen); n != 2 || g.seen[1].Get("grant_type") != "refresh_token" || g.seen[1].Get("resource") != g.URL+"/mcp" {
		t.Errorf("%d requests for tokens: %v", n, g.seen)
	}
}
