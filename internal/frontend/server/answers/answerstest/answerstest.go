// Package answerstest is the conformance suite of what keeps the answers of requests, see [rest.Answers].
package answerstest

import (
	"sync"
	"testing"
	"time"

	"loki/internal/frontend/server/rest"
)

// Run runs the suite. open returns an empty store whose time is now. next ends the process that has a store, and returns the
// store as a later one has it.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) rest.Answers, next func(t *testing.T, s rest.Answers) rest.Answers) {
	for name, test := range map[string]func(s *suite){
		"answered": (*suite).answered, "without_an_answer": (*suite).withoutAnswer, "forgotten": (*suite).forgotten, "lost": (*suite).lost, "placed": (*suite).placed, "again": (*suite).again,
		"after_a_day": (*suite).afterADay, "any_bytes": (*suite).anyBytes, "once": (*suite).once,
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{T: t, clock: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
			s.store = open(t, func() time.Time { return s.clock })
			s.next = func() { s.store = next(t, s.store) }
			test(s)
		})
	}
}

type suite struct {
	*testing.T
	clock time.Time
	store rest.Answers
	next  func()
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// begin begins a request with the key "k".
func (s *suite) begin(subject, digest string) *rest.Kept {
	s.Helper()
	k, err := s.store.Begin(s.Context(), subject, "k", []byte(digest), false)
	s.ok(err)
	return k
}

// isNew begins a request that has to be done.
func (s *suite) isNew(what, subject, digest string) {
	s.Helper()
	if k := s.begin(subject, digest); k != nil {
		s.Fatalf("%s: %+v", what, k)
	}
}

// is begins a request that was begun before.
func (s *suite) is(what string, state rest.KeptState, subject string) *rest.Kept {
	s.Helper()
	k := s.begin(subject, "other")
	if k == nil || k.State != state || string(k.Digest) != "d" {
		s.Fatalf("%s: %+v", what, k)
	}
	return k
}

func (s *suite) answered() {
	s.isNew("a key", "ann", "d")
	s.isNew("the key of another subject", "bob", "d")
	s.is("at work", rest.KeptRunning, "ann")
	s.ok(s.store.End(s.Context(), "ann", "k", rest.Kept{Status: 201, Type: "text/x", Where: "/v1/runs/x", Body: []byte("hi\x00")}))
	s.ok(s.store.Forget(s.Context(), "ann", "k")) // it is answered
	for range 2 {
		k := s.is("answered", rest.KeptWhole, "ann")
		if k.Status != 201 || k.Type != "text/x" || k.Where != "/v1/runs/x" || string(k.Body) != "hi\x00" {
			s.Errorf("%+v", k)
		}
		s.next()
	}
}

func (s *suite) withoutAnswer() {
	s.isNew("a key", "ann", "d")
	s.ok(s.store.End(s.Context(), "ann", "k", rest.Kept{Where: "/v1/runs/x"}))
	if k := s.is("done", rest.KeptWhole, "ann"); k.Status != 0 || k.Where != "/v1/runs/x" || len(k.Body) > 0 {
		s.Errorf("%+v", k)
	}
}

func (s *suite) forgotten() {
	s.isNew("a key", "ann", "d")
	s.ok(s.store.Forget(s.Context(), "ann", "k"))
	s.isNew("a key that was forgotten", "ann", "e")
}

func (s *suite) lost() {
	s.isNew("a key", "ann", "d")
	s.next()
	s.is("at work when the process ended", rest.KeptLost, "ann")
	s.ok(s.store.Forget(s.Context(), "ann", "k")) // which was not this process's
	s.ok(s.store.End(s.Context(), "ann", "k", rest.Kept{Status: 200}))
	s.is("at work when the process ended", rest.KeptLost, "ann")
}

// placed loses a request that has begun to have its effect.
func (s *suite) placed() {
	s.isNew("a key", "ann", "d")
	s.ok(s.store.Place(s.Context(), "ann", "k", "/v1/runs/x"))
	if k := s.is("at work", rest.KeptRunning, "ann"); k.Where != "/v1/runs/x" {
		s.Errorf("%+v", k)
	}
	s.next()
	s.ok(s.store.Place(s.Context(), "ann", "k", "/v1/runs/y")) // it is not this process's
	k, err := s.store.Begin(s.Context(), "ann", "k", []byte("d"), true)
	if s.ok(err); k == nil || k.State != rest.KeptLost || k.Where != "/v1/runs/x" {
		s.Errorf("lost: %+v", k)
	}
}

// again loses a request that has done nothing: it is done again if it is the same.
func (s *suite) again() {
	s.isNew("a key", "ann", "d")
	begin := func(digest string) *rest.Kept {
		s.Helper()
		k, err := s.store.Begin(s.Context(), "ann", "k", []byte(digest), true)
		s.ok(err)
		return k
	}
	if k := begin("d"); k == nil || k.State != rest.KeptRunning {
		s.Errorf("at work: %+v", k)
	}
	s.next()
	if k := begin("e"); k == nil || k.State != rest.KeptLost {
		s.Errorf("another request: %+v", k)
	}
	if k := begin("d"); k != nil {
		s.Errorf("lost: %+v", k)
	}
	if k := begin("d"); k == nil || k.State != rest.KeptRunning {
		s.Errorf("at work again: %+v", k)
	}
	s.ok(s.store.End(s.Context(), "ann", "k", rest.Kept{Status: 200}))
	if k := begin("d"); k == nil || k.Status != 200 {
		s.Errorf("answered: %+v", k)
	}
	s.next()
	if k := begin("d"); k == nil || k.Status != 200 {
		s.Errorf("answered before: %+v", k)
	}
}

func (s *suite) afterADay() {
	for _, subject := range []string{"ann", "bob"} {
		s.isNew("a key", subject, "d")
	}
	s.ok(s.store.End(s.Context(), "ann", "k", rest.Kept{Status: 200, Body: []byte("x")}))
	s.clock = s.clock.Add(23 * time.Hour)
	s.is("after most of a day", rest.KeptWhole, "ann")
	s.clock = s.clock.Add(time.Hour)
	s.isNew("after a day", "ann", "d")
	if k := s.is("begun again", rest.KeptRunning, "ann"); k.Status != 0 || len(k.Body) > 0 {
		s.Errorf("%+v", k)
	}
}

// anyBytes has a key and a subject that are not texts.
func (s *suite) anyBytes() {
	for range 2 {
		k, err := s.store.Begin(s.Context(), "a\x00", "\xff", []byte("d"), false)
		s.ok(err)
		if k != nil && k.State != rest.KeptRunning {
			s.Errorf("%+v", k)
		}
	}
	s.ok(s.store.End(s.Context(), "a\x00", "\xff", rest.Kept{Status: 200, Type: "\xff", Where: "\x00"}))
	k, err := s.store.Begin(s.Context(), "a\x00", "\xff", []byte("d"), false)
	s.ok(err)
	if k == nil || k.Status != 200 || k.Type != "\xff" || k.Where != "\x00" {
		s.Errorf("%+v", k)
	}
}

// once has many begin the same request at once.
func (s *suite) once() {
	var wg sync.WaitGroup
	kept := make([]*rest.Kept, 16) // goroutine i writes kept[i] only
	for i := range kept {
		wg.Go(func() {
			var err error
			if kept[i], err = s.store.Begin(s.Context(), "ann", "k", []byte("d"), false); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	done := 0
	for _, k := range kept {
		switch {
		case k == nil:
			done++
		case k.State != rest.KeptRunning:
			s.Errorf("%+v", k)
		}
	}
	if done != 1 {
		s.Errorf("the request is to be done %d times", done)
	}
}
