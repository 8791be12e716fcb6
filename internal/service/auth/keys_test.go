package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"
)

var home = netip.MustParseAddr("192.0.2.1")

// cheap returns a hash of key that takes microseconds.
func cheap(key string) Hash {
	h := Hash{time: 1, memory: 8, threads: 1, salt: []byte("salt of the test")}
	h.sum = argon2.IDKey([]byte(key), h.salt, h.time, h.memory, h.threads, 32)
	return h
}

// newKeys returns keys one of which has the text "loki_0123456789ab_S", and one "by hand".
func newKeys() *Keys {
	k := New([]Key{
		{Subject: "alice", ID: "0123456789ab", Hash: cheap("loki_0123456789ab_S"), Scopes: []Scope{Read}},
		{Subject: "bob", ID: "hand", Hash: cheap("by hand")},
	})
	k.decoy = cheap("decoy")
	return k
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys()
		for _, tt := range []struct{ key, subject, id string }{
			{"loki_0123456789ab_S", "alice", "0123456789ab"},
			{"by hand", "bob", "hand"},
			{"loki_0123456789ab_T", "", ""},
			{"loki_0123456789ac_S", "", ""},
			{"loki_hand_S", "", ""},
			{"loki_", "", ""},
			{"", "", ""},
			{string(make([]byte, maxKey+1)), "", ""},
		} {
			for range 3 { // it is remembered
				who, err := k.Verify(t.Context(), home, tt.key)
				if who.Subject != tt.subject || who.KeyID != tt.id || (tt.subject == "") != errors.Is(err, ErrUnknown) {
					t.Errorf("%q is of %+v, error %v", tt.key, who, err)
				}
			}
		}
	})
}

func TestVerifyMadeKey(t *testing.T) {
	text, id, h := NewKey()
	read, err := ParseHash(h.String())
	if err != nil || CheckID(id) != nil || !madeHere(id) || idOf(text) != id {
		t.Fatalf("key %q, id %q, error %v", text, id, err)
	}
	if key, err := Bearer([]string{"Bearer " + text}); key != text || err != nil {
		t.Errorf("%q in a header, error %v", key, err)
	}
	who, err := New([]Key{{Subject: "alice", ID: id, Hash: read}}).Verify(t.Context(), home, text)
	if err != nil || who.Subject != "alice" {
		t.Errorf("%+v, error %v", who, err)
	}
	if again, _, _ := NewKey(); again == text {
		t.Error("two keys are the same")
	}
}

// TestVerifyOnce sends a key in many requests at once.
func TestVerifyOnce(t *testing.T) {
	text, id, h := NewKey()
	k := New([]Key{{Subject: "alice", ID: id, Hash: h}})
	var wg sync.WaitGroup
	begun := time.Now()
	for range 200 {
		wg.Go(func() {
			if _, err := k.Verify(t.Context(), home, text); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("200 requests took %v", time.Since(begun))
	if n := len(k.known); n != 1 || len(k.pending) != 0 {
		t.Errorf("%d known, %d pending", n, len(k.pending))
	}
}

// TestVerifyCanceledFirst has the first of two requests with a key end while it waits.
func TestVerifyCanceledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys()
		free := <-k.own.turn // taken by another key
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error)
		go func() {
			_, err := k.Verify(ctx, home, "loki_0123456789ab_S")
			first <- err
		}()
		synctest.Wait()
		second := make(chan error)
		go func() {
			_, err := k.Verify(t.Context(), home, "loki_0123456789ab_S")
			second <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first ends with %v", err)
		}
		k.own.turn <- free
		if err := <-second; err != nil {
			t.Errorf("the second ends with %v", err)
		}
	})
}

// TestVerifyFlood sends unknown keys from one address as fast as it can, and uses keys of the
// server meanwhile.
func TestVerifyFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys()
		var hashed, stopped int
		for i := range 10_000 {
			_, err := k.Verify(t.Context(), home, fmt.Sprintf("loki_%012x_guess", i))
			if many, ok := errors.AsType[*TooManyError](err); ok {
				stopped++
				if many.After <= 0 || many.After > refusalRest {
					t.Fatalf("after %v", many.After)
				}
				continue
			}
			hashed++
		}
		if hashed != refusals || stopped != 10_000-refusals {
			t.Errorf("%d hashed, %d not", hashed, stopped)
		}
		if _, err := k.Verify(t.Context(), home, "loki_0123456789ab_S"); err != nil {
			t.Errorf("the first use of a known key from the same address: %v", err)
		}
		if _, err := k.Verify(t.Context(), home, "by hand"); err == nil {
			t.Error("a key without a known id was hashed")
		}
		time.Sleep(refusalRest)
		if _, err := k.Verify(t.Context(), home, "by hand"); err != nil {
			t.Errorf("after a rest: %v", err)
		}
	})
}

// TestVerifyFloodFromEverywhere sends unknown keys from many addresses as fast as it can. Meanwhile keys that
// were used before, and the first use of a new key, work as ever.
func TestVerifyFloodFromEverywhere(t *testing.T) {
	text, id, h := NewKey()
	second, secondID, secondHash := NewKey()
	k := New([]Key{{Subject: "alice", ID: id, Hash: h}, {Subject: "bob", ID: secondID, Hash: secondHash}})
	begun := time.Now()
	if _, err := k.Verify(t.Context(), home, text); err != nil {
		t.Fatal(err)
	}
	alone := time.Since(begun)
	ctx, stop := context.WithCancel(t.Context())
	hashed := make(chan bool, 1000)
	var refused atomic.Int64
	var wg sync.WaitGroup
	begun = time.Now()
	for worker := range 16 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				from := netip.AddrFrom4([4]byte{10, byte(worker), byte(i >> 8), byte(i)})
				_, err := k.Verify(ctx, from, fmt.Sprintf("loki_%06x%06x_guess", worker, i))
				switch {
				case errors.Is(err, ErrUnknown):
					hashed <- true
				case err != nil:
					refused.Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	again := time.Now()
	for range 1000 {
		if _, err := k.Verify(t.Context(), home, text); err != nil {
			t.Error(err)
		}
	}
	uses := time.Since(again)
	first := time.Now()
	if who, err := k.Verify(t.Context(), home, second); err != nil || who.Subject != "bob" {
		t.Errorf("the first use of a key: %+v, %v", who, err)
	}
	fresh := time.Since(first)
	<-hashed
	<-hashed
	stop()
	wg.Wait()
	t.Logf("a first use took %v, and %v in the flood; 1,000 later ones %v; %d unknown keys were hashed in %v and %d refused", alone, fresh, uses, 2+len(hashed), time.Since(begun), refused.Load())
	if len(k.peers) > maxPeers || len(k.refused) > maxRefused || len(k.pending) != 0 {
		t.Errorf("%d peers, %d refused keys, %d pending", len(k.peers), len(k.refused), len(k.pending))
	}
}

// TestVerifyTakesAsLong compares how long a key takes to be refused: one that names a key of the server, one
// that names none, and one of another form.
func TestVerifyTakesAsLong(t *testing.T) {
	text, id, h := NewKey()
	k := New([]Key{{Subject: "alice", ID: id, Hash: h}})
	count := func(key string) (took time.Duration) {
		begun := time.Now()
		if _, err := k.Verify(t.Context(), netip.Addr{}, key); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		return time.Since(begun)
	}
	near, other, odd := count(text[:len(text)-1]+"x"), count("loki_00112233aabb_"+text[18:]), count("odd")
	t.Logf("%v, %v, %v", near, other, odd)
	if least := near / 20; other < least || odd < least { // without a hash it would be microseconds
		t.Errorf("a key with a known id took %v, others took %v and %v", near, other, odd)
	}
}

func TestLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(1)
		enter := func() error { return l.enter(t.Context()) }
		if err := enter(); err != nil {
			t.Fatal(err)
		}
		second := make(chan error)
		go func() { second <- enter() }()
		synctest.Wait()
		if many, ok := errors.AsType[*TooManyError](enter()); !ok || many.After <= 0 {
			t.Errorf("a full lane: %v", many)
		}
		begun := time.Now()
		l.leave(begun.Add(3 * time.Second))
		if err := <-second; err != nil || time.Since(begun) != 3*time.Second {
			t.Errorf("the second enters after %v: %v", time.Since(begun), err)
		}
		l.leave(time.Now().Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the lane rests: %v", err)
		}
		begun = time.Now()
		if err := enter(); err != nil || time.Since(begun) != 59*time.Minute {
			t.Errorf("the next enters after %v: %v", time.Since(begun), err)
		}
	})
}

func BenchmarkVerifyFirst(b *testing.B) {
	text, id, h := NewKey()
	for b.Loop() {
		k := New([]Key{{Subject: "alice", ID: id, Hash: h}})
		if _, err := k.Verify(b.Context(), home, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyAgain(b *testing.B) {
	k := newKeys()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Verify(b.Context(), home, "loki_0123456789ab_S"); err != nil {
			b.Fatal(err)
		}
	}
}
