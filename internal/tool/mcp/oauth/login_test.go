package oauth_test

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

func TestRedirectURI(t *testing.T) {
	t.Parallel()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fixed := "http://" + free.Addr().String() + "/back"
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, configured, want string }{
		{"none", "", "http://127.0.0.1:PORT/callback"},
		{"port_0", "http://127.0.0.1:0/there/back", "http://127.0.0.1:PORT/there/back"},
		{"no_port", "http://localhost/cb", "http://localhost:PORT/cb"},
		{"no_path", "http://127.0.0.1:0", "http://127.0.0.1:PORT"},
		{"fixed", fixed, fixed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAuthority(t)
			p := a.provider(oauth.Browser)
			p.RedirectURI = tt.configured
			_, err := oauth.Login(t.Context(), p, user{visit: func(address, _ string) error {
				if got := get(t, address); got != 200 {
					t.Errorf("the callback: %d", got)
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			sent := a.params.Get("redirect_uri")
			u, err := url.Parse(sent)
			if err != nil || u.Port() == "" || u.Port() == "0" || sent != strings.Replace(tt.want, "PORT", u.Port(), 1) {
				t.Errorf("redirect_uri %s, %v", sent, err)
			}
			if got := a.tokens[0].Get("redirect_uri"); got != sent {
				t.Errorf("then %s", got)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p := newAuthority(t).provider(oauth.Browser)
	p.RedirectURI = "http://" + taken.Addr().String() + "/callback"
	_, err = oauth.Login(t.Context(), p, user{visit: func(string, string) error {
		t.Error("the user was sent to an address that cannot work")
		return nil
	}})
	if err == nil {
		t.Error("no error")
	}
}

func TestUnsafeAddresses(t *testing.T) {
	t.Parallel()
	good := oauth.Provider{
		Name: "c", Flow: oauth.Browser, ClientID: "id", AuthorizeURL: "https://example.com/a", TokenURL: "https://example.com/t",
		DeviceURL: "https://example.com/d",
	}
	for _, tt := range []struct {
		name   string
		change func(*oauth.Provider)
		want   string
	}{
		{"good", func(*oauth.Provider) {}, ""},
		{"own_machine", func(p *oauth.Provider) { p.TokenURL, p.AuthorizeURL = "http://127.0.0.1:1/t", "http://[::1]/a" }, ""},
		{"loopback_redirects", func(p *oauth.Provider) { p.RedirectURI = "http://localhost:8085/cb" }, ""},
		{"pasted_redirect", func(p *oauth.Provider) { p.Flow, p.RedirectURI = oauth.Paste, "https://example.com/shown" }, ""},
		{"token", func(p *oauth.Provider) { p.TokenURL = "http://example.com/t" }, "oauth.token_url"},
		{"authorize", func(p *oauth.Provider) { p.AuthorizeURL = "http://example.com/a" }, "oauth.authorize_url"},
		{"device", func(p *oauth.Provider) { p.DeviceURL = "http://127.0.0.1.example.com/d" }, "oauth.device_url"},
		{"script", func(p *oauth.Provider) { p.AuthorizeURL = "javascript:alert(1)" }, "oauth.authorize_url"},
		{"redirect_elsewhere", func(p *oauth.Provider) { p.RedirectURI = "http://example.com:80/cb" }, "oauth.redirect_uri"},
		{"redirect_https", func(p *oauth.Provider) { p.RedirectURI = "https://127.0.0.1:80/cb" }, "oauth.redirect_uri"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := good
			tt.change(&p)
			err := p.Check()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), tt.want) || fault.HintOf(err) == "" {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What a request for a token holds is for the configured server only.
func TestTokenRequestsAreNotRedirected(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p := a.provider(oauth.ClientCredentials)
	p.HTTP = &http.Client{Transport: replies(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "elsewhere.example.com" {
			t.Error("the request went elsewhere")
		}
		w.Header().Set("Location", "https://elsewhere.example.com/t")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})}
	if _, err := oauth.Login(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("error %v", err)
	}
}
