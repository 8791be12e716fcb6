package webhook_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/workflow/run/webhook"
)

// TestSign has the example of the Standard Webhooks libraries.
func TestSign(t *testing.T) {
	got := webhook.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestLinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "links.key")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := func() *webhook.Links {
		l, err := webhook.OpenLinks(path, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	want := webhook.Link{Run: "k3v9k3v9", Question: "a@2", Asked: 7, Expires: now.Add(time.Hour)}
	token, err := open().Token(want)
	if err != nil {
		t.Fatal(err)
	}
	links := open()
	if got, err := links.Read(token); err != nil || got != want {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, wrong := range []string{"", ".", token + "A", token[1:], "e30." + strings.Split(token, ".")[1]} {
		if _, err := links.Read(wrong); !errors.Is(err, webhook.ErrLink) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	now = now.Add(2 * time.Hour)
	if _, err := links.Read(token); !errors.Is(err, webhook.ErrLink) {
		t.Errorf("after its time: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add("e30.e30")
	links, err := webhook.OpenLinks(filepath.Join(f.TempDir(), "key"), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if link, err := links.Read(token); err == nil {
			t.Errorf("%q is the link %+v", token, link)
		}
	})
}

// post is the network: it fails as often as it is told to.
type post struct {
	mu       sync.Mutex
	failures int
	got      []string // host, type and id
}

func (p *post) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC1123, time.Now().UTC().Format(time.RFC1123))
	if sig := webhook.Sign("s3cret", r.Header.Get("Webhook-Id"), at, body); err != nil || r.Header.Get("Webhook-Signature") != sig {
		return nil, errors.New("the signature is wrong")
	}
	status := http.StatusNoContent
	if p.failures > 0 {
		p.failures--
		status = http.StatusBadGateway
	} else {
		p.got = append(p.got, r.URL.Host+" "+strings.Split(string(body), `"`)[3])
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}}, nil
}

// TestDesk sends the notices of a run, some at the second try, some after another start.
func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "webhooks")
		network := &post{failures: 3}
		var mu sync.Mutex
		var notices []webhook.Notice
		more, gone := true, false
		say := func(kind string, last bool) {
			mu.Lock()
			defer mu.Unlock()
			notices, more = append(notices, webhook.Notice{Key: kind, Type: kind, At: time.Now(), Data: map[string]string{"run_id": "r"}}), !last
		}
		open := func() *webhook.Desk {
			client := &http.Client{Transport: network}
			d, err := webhook.Open(t.Context(), webhook.Options{
				Dir: dir, Trusted: client, Guarded: &http.Client{Transport: forbidden{}}, Log: slog.New(slog.DiscardHandler),
				Fill: func(text string) (string, error) { return strings.ReplaceAll(text, "{{S}}", "s3cret"), nil },
				Notices: func(context.Context, string) ([]webhook.Notice, bool, error) {
					mu.Lock()
					defer mu.Unlock()
					if gone {
						return nil, false, fs.ErrNotExist
					}
					return slices.Clone(notices), more, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := open()
		hooks := []webhook.Hook{
			{URL: "http://all.test", Secret: "{{S}}", Trusted: true},
			{URL: "http://end.test", Secret: "s3cret", Events: []string{"finished"}, Trusted: true},
		}
		for range 2 { // the second time changes nothing
			if err := d.Add("r", hooks...); err != nil {
				t.Fatal(err)
			}
		}
		say("question", false)
		d.Look("r")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if want := []string{"all.test question"}; !slices.Equal(network.got, want) {
			t.Fatalf("sent %q, want %q", network.got, want)
		}
		d.Close()
		say("finished", true)
		d = open()
		synctest.Wait()
		if want := []string{"all.test question", "all.test finished", "end.test finished"}; !slices.Equal(network.got, want) {
			t.Fatalf("sent %q, want %q", network.got, want)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.json")); len(left) > 0 || err != nil {
			t.Errorf("files of what was sent: %v, %v", left, err)
		}
		d.Close()
		say("again", true) // such as a failed run that is resumed
		d = open()
		synctest.Wait()
		if len(network.got) != 3 {
			t.Errorf("sent of a run that did not go on: %q", network.got)
		}
		if err := d.Add("r"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if want := "all.test again"; len(network.got) != 4 || network.got[3] != want {
			t.Errorf("sent %q, want %q at the end", network.got, want)
		}
		list, err := d.Deliveries("r")
		if err != nil || len(list) != 4 {
			t.Fatalf("deliveries %+v, %v", list, err)
		}
		if first := list[0]; first.Type != "question" || first.Host != "http://all.test" || first.Attempts != 4 || first.Status != http.StatusNoContent || first.Error != "" || !first.Again.IsZero() {
			t.Errorf("the first delivery is %+v", first)
		}
		d.Close()
		mu.Lock()
		gone = true
		mu.Unlock()
		d = open()
		synctest.Wait()
		if left, err := filepath.Glob(filepath.Join(dir, "*", "*.json")); len(left) > 0 || err != nil {
			t.Errorf("files of a run that is not on record any more: %v, %v", left, err)
		}
		if err := d.Add("none"); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.json")); len(left) > 0 || err != nil {
			t.Errorf("files of a run without hooks: %v, %v", left, err)
		}
		d.Close()
	})
}

// TestSecrets sends a notice to an address that is a secret, and has others in it.
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d, err := webhook.Open(t.Context(), webhook.Options{
			Dir: t.TempDir(), Trusted: &http.Client{Transport: forbidden{}}, Guarded: &http.Client{Transport: forbidden{}}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Fill: func(text string) (string, error) {
				return strings.ReplaceAll(text, "{{S}}", "https://s3cret.test"), nil
			},
			Notices: func(context.Context, string) ([]webhook.Notice, bool, error) {
				return []webhook.Notice{{Key: "k", Type: "finished"}}, false, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Add("r", webhook.Hook{URL: "{{S}}/x", Trusted: true}, webhook.Hook{URL: "https://a:s3cret@b.test/s3cret?k=s3cret", Secret: "s3cret"})
		synctest.Wait()
		list, listErr := d.Deliveries("r")
		if err := errors.Join(err, listErr); err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		d.Close()
		for i, host := range []string{"", "https://b.test"} {
			if got := list[i]; got.Host != host || got.Error != "it could not be reached" || got.Attempts != 1 || got.Again.Sub(got.At) < time.Second {
				t.Errorf("delivery %d: %+v", i, got)
			}
		}
		if !strings.Contains(log.String(), "not allowed") || strings.Contains(log.String(), "s3cret") {
			t.Errorf("the log: %s", &log)
		}
	})
}

// forbidden is a network that hooks of requests must not get around.
type forbidden struct{}

func (forbidden) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("not allowed")
}
