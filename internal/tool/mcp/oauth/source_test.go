package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"loki/internal/base/fault"
	"loki/internal/tool/mcp/oauth"
)

// sourceOf is a source of the time of a bubble whose server answers with reply.
func sourceOf(t *testing.T, token *oauth2.Token, reply replies) *oauth.Source {
	t.Helper()
	s := &oauth.Source{
		Name: "c", Store: oauth.StoreIn(filepath.Join(t.TempDir(), "oauth"), "c"),
		Provider: func() (oauth.Provider, error) {
			return oauth.Provider{
				Name: "c", Flow: oauth.Browser, ClientID: "id", ClientSecret: "hush", AuthorizeURL: "https://example.com/a", TokenURL: "https://example.com/t",
				HTTP: &http.Client{Transport: reply},
			}, nil
		},
	}
	if err := s.Store.Save(token); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokenThatCannotBeRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := tells(unreachable, "")
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now().Add(time.Hour)},
			func(w http.ResponseWriter, r *http.Request) { reply(w, r) })
		time.Sleep(59*time.Minute + 30*time.Second)
		if got, err := s.Token(t.Context()); err != nil || got != "old" {
			t.Errorf("within its last minute: %q, %v", got, err)
		}
		time.Sleep(30 * time.Second)
		_, err := s.Token(t.Context())
		if fault.CodeOf(err) != fault.Provider || !strings.Contains(err.Error(), "connection refused") || fault.HintOf(err) != "log in again: loki --authenticate c" {
			t.Errorf("afterwards: %v", err)
		}
		reply = tells(http.StatusOK, `{"access_token":"new","token_type":"bearer","expires_in":60}`)
		if got, err := s.Token(t.Context()); err != nil || got != "new" {
			t.Errorf("when the server is back: %q, %v", got, err)
		}
		if kept, err := s.Store.Load(); err != nil || kept.RefreshToken != "r" {
			t.Errorf("the refresh token: %+v, %v", kept, err)
		}
	})
}

// TestSeen: each token is announced before it is used, with what renews it.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now()},
			tells(http.StatusOK, `{"access_token":"new","refresh_token":"r2","token_type":"bearer","expires_in":600}`))
		var seen []string
		s.Seen = func(token *oauth2.Token) {
			if text := token.AccessToken + " " + token.RefreshToken; !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
		if _, err := s.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen, ", "); got != "old r1, new r2" {
			t.Errorf("seen are %s", got)
		}
	})
}

func TestLifetimeThatNobodyTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewed := 0
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now()}, func(w http.ResponseWriter, r *http.Request) {
			renewed++
			tells(http.StatusOK, `{"access_token":"new"}`)(w, r)
		})
		for _, want := range []int{1, 1, 2} {
			if _, err := s.Token(t.Context()); err != nil || renewed != want {
				t.Errorf("renewed %d times, %v", renewed, err)
			}
			time.Sleep(40 * time.Minute)
		}
	})
}

func TestTokenWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, &oauth2.Token{AccessToken: "eternal"}, tells(unreachable, ""))
		time.Sleep(1000 * time.Hour)
		if got, err := s.Token(t.Context()); err != nil || got != "eternal" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestNoRefreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", Expiry: time.Now()}, tells(unreachable, ""))
		_, err := s.Token(t.Context())
		if fault.CodeOf(err) != fault.Provider || fault.HintOf(err) != "log in again: loki --authenticate c" {
			t.Errorf("error %v", err)
		}
	})
}

// A refresh token that the server has taken is worth nothing any more, so the answer is
// waited for even if nobody wants it.
func TestRenewalOutlastsItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now()}, func(w http.ResponseWriter, r *http.Request) {
			cancel()
			time.Sleep(time.Second)
			tells(http.StatusOK, `{"access_token":"new","refresh_token":"r2","expires_in":3600}`)(w, r)
		})
		_, _ = s.Token(ctx)
		if kept, err := s.Store.Load(); err != nil || kept.RefreshToken != "r2" {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

func TestRenewalDoesNotOutlastItsCallerForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r1", Expiry: time.Now()}, nil)
		s.Provider = func() (oauth.Provider, error) {
			return oauth.Provider{Flow: oauth.Browser, TokenURL: "https://example.com", HTTP: &http.Client{Transport: silent{cancel}}}, nil
		}
		begin := time.Now()
		if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// silent is a server that never answers; meanwhile something happens.
type silent struct{ meanwhile func() }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	s.meanwhile()
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestWaitingForAnothersRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now()}, func(w http.ResponseWriter, r *http.Request) {
			<-release
			tells(http.StatusOK, `{"access_token":"new","expires_in":3600}`)(w, r)
		})
		done := make(chan error)
		go func() {
			_, err := s.Token(t.Context())
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsAreSilentAboutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, &oauth2.Token{AccessToken: "old-token", RefreshToken: "refresh-token", Expiry: time.Now()},
			tells(http.StatusInternalServerError, "<html>hush refresh-token old-token</html>"))
		_, err := s.Token(t.Context())
		if err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "-token") {
			t.Errorf("error %v", err)
		}
	})
}

func TestStoreIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"claude", "my server", "../../etc/x", `a\b`, "mcp:x", ".."} {
		s := oauth.StoreIn(dir, name)
		if err := s.Save(&oauth2.Token{AccessToken: name}); err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(s.File) != dir {
			t.Errorf("%s is outside of %s", s.File, dir)
		}
		if got, err := s.Load(); err != nil || got.AccessToken != name {
			t.Errorf("%+v, %v", got, err)
		}
		if info, err := os.Stat(s.File); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if got := oauth.StoreIn(dir, "claude").File; got != filepath.Join(dir, "claude_oauth_tokens.json") {
		t.Errorf("file %s", got)
	}
}

// TestRejectedToken: a token that the server does not accept any more is renewed before it expires, once. If that fails, it is
// what there is.
func TestRejectedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renewed := 0
		s := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now().Add(time.Hour)}, func(w http.ResponseWriter, r *http.Request) {
			renewed++
			tells(http.StatusOK, `{"access_token":"new","expires_in":3600}`)(w, r)
		})
		for _, want := range []string{"old", "new", "new"} {
			if got, err := s.Token(t.Context()); err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
			s.Reject(t.Context(), "old")
		}
		if renewed != 1 {
			t.Errorf("renewed %d times", renewed)
		}

		gone := sourceOf(t, &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now().Add(time.Hour)}, tells(http.StatusBadRequest, `{"error":"invalid_grant"}`))
		gone.Reject(t.Context(), "old")
		if got, err := gone.Token(t.Context()); err != nil || got != "old" {
			t.Errorf("%q, %v", got, err)
		}
	})
}
