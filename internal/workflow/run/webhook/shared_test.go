package webhook_test

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/service/postgres"
	"loki/internal/service/postgres/postgrestest"
	"loki/internal/workflow/run/webhook"
)

// shop is the record of runs, and the receiver of their notices. The first notices to an address "slow" do not arrive.
type shop struct {
	t       *testing.T
	address string

	mu      sync.Mutex
	notices map[string][]webhook.Notice // by run
	more    map[string]bool
	got     []string // run and type
	slow    chan struct{}
	changed chan struct{} // holds a token when got has changed
}

func newShop(t *testing.T) *shop {
	return &shop{
		t: t, address: postgrestest.Database(t), notices: make(map[string][]webhook.Notice), more: make(map[string]bool), slow: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	first := len(s.got) == 0
	parts := strings.Split(string(body), `"`)
	s.got = append(s.got, parts[len(parts)-2]+" "+parts[3])
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	if r.URL.Host == "slow" && first {
		<-s.slow
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}, nil
}

func (s *shop) say(run, kind string, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices[run] = append(s.notices[run], webhook.Notice{Key: kind, Type: kind, At: time.Now(), Data: run})
	s.more[run] = !last
}

// wait returns what has been sent once that is n notices, sorted.
func (s *shop) wait(n int) []string {
	s.t.Helper()
	late := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		got := slices.Sorted(slices.Values(s.got))
		s.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-s.changed:
		case <-late:
			s.t.Fatalf("sent %q", got)
		}
	}
}

// server opens a desk as a server of its own.
func (s *shop) server() (*webhook.Desk, *postgres.DB) {
	s.t.Helper()
	db, err := postgres.Open(s.address, postgres.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(db.Close)
	d, err := webhook.Open(s.t.Context(), webhook.Options{
		DB: db, Every: 50 * time.Millisecond, Trusted: &http.Client{Transport: s}, Guarded: &http.Client{Transport: s}, Log: slog.New(slog.DiscardHandler),
		Notices: func(_ context.Context, run string) ([]webhook.Notice, bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.notices[run] == nil {
				return nil, false, fs.ErrNotExist
			}
			return slices.Clone(s.notices[run]), s.more[run], nil
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(d.Close)
	return d, db
}

// TestSharedDesks has three servers hear of the same runs at once.
func TestSharedDesks(t *testing.T) {
	s := newShop(t)
	var desks []*webhook.Desk
	for range 3 {
		d, _ := s.server()
		desks = append(desks, d)
	}
	runs := []string{"a", "b", "c", "d"}
	for i, run := range runs {
		s.say(run, "question", false)
		if err := desks[i%3].Add(run, webhook.Hook{URL: "http://one.test"}, webhook.Hook{URL: "http://two.test", Events: []string{"finished"}}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		var all sync.WaitGroup
		for _, d := range desks {
			for _, run := range runs {
				all.Go(func() { d.Look(run) })
			}
		}
		all.Wait()
	}
	look()
	want := []string{"a question", "b question", "c question", "d question"}
	if got := s.wait(4); !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
	for _, run := range runs {
		s.say(run, "finished", true)
	}
	look()
	look()
	want = []string{
		"a finished", "a finished", "a question", "b finished", "b finished", "b question",
		"c finished", "c finished", "c question", "d finished", "d finished", "d question",
	}
	if got := s.wait(12); !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
	for _, d := range desks {
		d.Close()
	}
	later, _ := s.server()
	if list, err := later.Deliveries("a"); len(list) != 3 || err != nil {
		t.Errorf("deliveries %v, %v", list, err)
	}
	if len(s.wait(12)) != 12 {
		t.Error("a notice was sent again")
	}
}

// TestServerThatDies ends a server while it sends a notice, which another one sends then.
func TestServerThatDies(t *testing.T) {
	s := newShop(t)
	dying, db := s.server()
	s.say("a", "finished", true)
	if err := dying.Add("a", webhook.Hook{URL: "http://slow"}); err != nil {
		t.Fatal(err)
	}
	s.wait(1)
	other, _ := s.server()
	other.Look("a")
	db.Close()
	s.wait(2)
	close(s.slow)
	dying.Close()
	other.Close()
	last, _ := s.server()
	if list, err := last.Deliveries("a"); len(list) != 1 || err != nil || list[0].Attempts != 1 || list[0].Status != http.StatusNoContent {
		t.Errorf("deliveries %+v, %v", list, err)
	}
}

func TestSharedLinks(t *testing.T) {
	address := postgrestest.Database(t)
	token := ""
	for range 2 {
		db, err := postgres.Open(address, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		links, err := webhook.SharedLinks(t.Context(), db, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := webhook.Link{Run: "r", Question: "q", Asked: 7, Expires: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
		if token == "" {
			if token, err = links.Token(want); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := links.Read(token); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
