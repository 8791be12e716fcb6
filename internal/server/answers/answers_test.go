package answers_test

import (
	"path/filepath"
	"testing"
	"time"

	"loki/internal/server/answers"
	"loki/internal/server/rest"
)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "requests.db")
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := answers.New(path, clock)
	ctx := t.Context()
	begin := func(s *answers.Store, subject, digest string) *rest.Kept {
		t.Helper()
		k, err := s.Begin(ctx, subject, "k", []byte(digest))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if k := begin(s, "ann", "d"); k != nil {
		t.Fatalf("a new key: %+v", k)
	}
	if k := begin(s, "bob", "d"); k != nil {
		t.Fatalf("the key of another subject: %+v", k)
	}
	if k := begin(s, "ann", "d"); k == nil || k.State != rest.KeptRunning {
		t.Fatalf("at work: %+v", k)
	}
	if err := s.End(ctx, "ann", "k", rest.Kept{Status: 201, Type: "text/x", Body: []byte("hi")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(ctx, "ann", "k"); err != nil { // it is answered
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = answers.New(path, clock)
	defer s.Close()
	if k := begin(s, "ann", "other"); k == nil || k.State != rest.KeptWhole || k.Status != 201 || k.Type != "text/x" || string(k.Body) != "hi" || string(k.Digest) != "d" {
		t.Fatalf("after a restart: %+v", k)
	}
	if k := begin(s, "bob", "d"); k == nil || k.State != rest.KeptLost {
		t.Fatalf("at work when the process ended: %+v", k)
	}
	now = now.Add(24 * time.Hour)
	if k := begin(s, "ann", "d"); k != nil {
		t.Fatalf("after a day: %+v", k)
	}
	if err := s.Forget(ctx, "ann", "k"); err != nil {
		t.Fatal(err)
	}
	if k := begin(s, "ann", "e"); k != nil {
		t.Fatalf("after it was forgotten: %+v", k)
	}
}
