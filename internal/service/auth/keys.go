package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"
)

// Key is a key as the configuration has it.
type Key struct {
	Subject string // required
	ID      string // no secret; unique among the keys of a server
	Hash    Hash
	Scopes  []Scope
	Groups  []string // of the subject
}

// ErrUnknown reports a key that the server does not have.
var ErrUnknown = errors.New("the key is unknown")

// TooManyError reports that a request was refused because too many came before.
type TooManyError struct {
	Of    string        // what, in the plural
	After time.Duration // when it is worthwhile to try again; above 0
}

const unknownKeys = "unknown keys"

// Error says so.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("too many %s, try again in %v", e.Of, time.Duration(max(1, math.Ceil(e.After.Seconds())))*time.Second) // as Retry-After has it
}

const (
	maxRefused = 4096  // unknown keys that are remembered
	maxPeers   = 10000 // whose unknown keys are counted

	refusals    = 10              // unknown keys that a peer may send at once
	refusalRest = 6 * time.Second // after which it may send another

	// rest is how long a lane rests after the hash of an unknown key, as a multiple of the
	// time that the hash took. With two lanes, unknown keys take at most half a core.
	rest = 3
)

// Keys knows the keys of a server. Its methods may be called from several goroutines.
//
// A hash is slow to compute by intention, so each key is hashed once, whether it is known or
// not, and is then remembered by a code under a key that this process drew. What is new is
// hashed in one of two lanes, one hash at a time in each: one is for keys whose text names one of
// the server's keys, the other for all else. So guessed keys do not delay the first use of
// keys that [NewKey] made, and neither delays a key that was used before.
type Keys struct {
	secret    [32]byte
	keys      []Key
	byID      map[string]int // indexes of keys
	own       lane
	strangers lane
	decoy     Hash // what is compared if there is nothing to compare with

	mu      sync.Mutex
	known   map[digest]Identity
	refused map[digest]bool
	oldest  []digest                 // of refused, as a ring once it is full
	next    int                      // where the ring continues
	pending map[digest]chan struct{} // closed when the key was looked at
	peers   map[peer]time.Time       // when all refusals of a peer are forgotten
}

type digest [sha256.Size]byte

// peer is a place that unknown keys come from. Keys that name one of the server's count
// apart, so that strangers behind the same proxy do not stop their first use.
type peer struct {
	from netip.Prefix
	id   string
}

// New returns the keys of a server. Two of them with the same ID count as one, the first.
func New(keys []Key) *Keys {
	k := &Keys{
		keys: keys, byID: make(map[string]int, len(keys)), own: newLane(64), strangers: newLane(8),
		known: make(map[digest]Identity), refused: make(map[digest]bool), pending: make(map[digest]chan struct{}), peers: make(map[peer]time.Time),
	}
	_, _ = rand.Read(k.secret[:])
	for i := len(keys) - 1; i >= 0; i-- {
		k.byID[keys[i].ID] = i
	}
	k.decoy = Hash{time: hashTime, memory: hashMemory, threads: 1, salt: make([]byte, 16), sum: make([]byte, 32)}
	_, _ = rand.Read(k.decoy.sum)
	return k
}

// Has reports whether the key of an identity is one of the server's.
func (k *Keys) Has(who Identity) bool {
	i, ok := k.byID[who.KeyID]
	return ok && k.keys[i].Subject == who.Subject
}

// Verify returns who has the key, which came from the address from; the zero address is one
// for all whose address is not known. The scopes of the identity must not be changed. The
// error is [ErrUnknown], a [*TooManyError] or that of ctx.
func (k *Keys) Verify(ctx context.Context, from netip.Addr, key string) (Identity, error) {
	if key == "" || len(key) > maxKey {
		return Identity{}, ErrUnknown
	}
	code := k.digest(key)
	for {
		k.mu.Lock()
		who, ok := k.known[code]
		refused, pending := k.refused[code], k.pending[code]
		if !ok && !refused && pending == nil {
			done := make(chan struct{})
			k.pending[code] = done
			k.mu.Unlock()
			return k.look(ctx, from, key, code, done)
		}
		k.mu.Unlock()
		switch {
		case ok:
			return who, nil
		case refused:
			return Identity{}, ErrUnknown
		}
		select { // another request has sent the same key
		case <-pending:
		case <-ctx.Done():
			return Identity{}, ctx.Err()
		}
	}
}

func (k *Keys) digest(key string) (code digest) {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write([]byte(key))
	h.Sum(code[:0])
	return code
}

// look hashes a key that is new and remembers the result. It closes done.
func (k *Keys) look(ctx context.Context, from netip.Addr, key string, code digest, done chan struct{}) (who Identity, err error) {
	candidates, lane, id := k.candidates(key)
	place := peer{Network(from), id}
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case err == nil:
			k.known[code] = who
			k.forgive(place)
		case errors.Is(err, ErrUnknown):
			k.refuse(code)
		}
		delete(k.pending, code)
		close(done)
	}()
	if err := k.count(place); err != nil {
		return Identity{}, err
	}
	if err := lane.enter(ctx); err != nil {
		return Identity{}, err
	}
	begun := time.Now()
	for _, c := range candidates {
		if c.Hash.matches(key) {
			lane.leave(time.Time{})
			return Identity{Subject: c.Subject, KeyID: c.ID, Scopes: c.Scopes, Groups: c.Groups}, nil
		}
	}
	if len(candidates) == 0 {
		k.decoy.matches(key)
	}
	now := time.Now()
	lane.leave(now.Add(rest * now.Sub(begun)))
	return Identity{}, ErrUnknown
}

// candidates returns what to compare key with, where, and the id that it names if the
// server has that. A key that names none may be one that was not made by [NewKey].
func (k *Keys) candidates(key string) (list []Key, l *lane, id string) {
	if i, ok := k.byID[idOf(key)]; ok {
		return k.keys[i : i+1], &k.own, k.keys[i].ID
	}
	for _, c := range k.keys {
		if !madeHere(c.ID) {
			list = append(list, c)
		}
	}
	return list, &k.strangers, ""
}

// Network returns what an address counts as where something is counted by address: an IPv6 subscriber has a whole network of 64
// bits. That of the zero Addr is the zero Prefix.
func Network(from netip.Addr) netip.Prefix {
	from = from.Unmap().WithZone("")
	bits := 32
	if from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits)
	return network
}

// count counts a key that is about to be looked at, as if it were unknown.
func (k *Keys) count(p peer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	clean, ok := k.peers[p]
	if !ok && len(k.peers) >= maxPeers {
		k.forget(now)
	}
	if clean.Before(now) {
		clean = now
	}
	if wait := clean.Sub(now) - (refusals-1)*refusalRest; wait > 0 {
		return &TooManyError{Of: unknownKeys, After: wait}
	}
	k.peers[p] = clean.Add(refusalRest)
	return nil
}

// forget makes room in peers: quiet ones go, otherwise any one.
func (k *Keys) forget(now time.Time) {
	for p, clean := range k.peers {
		if clean.Before(now) {
			delete(k.peers, p)
		}
	}
	for p := range k.peers {
		if len(k.peers) < maxPeers {
			return
		}
		delete(k.peers, p)
	}
}

// forgive takes the last count back: the key was known.
func (k *Keys) forgive(p peer) {
	if clean, ok := k.peers[p]; ok {
		k.peers[p] = clean.Add(-refusalRest)
	}
}

func (k *Keys) refuse(code digest) {
	k.refused[code] = true
	if len(k.oldest) < maxRefused {
		k.oldest = append(k.oldest, code)
		return
	}
	delete(k.refused, k.oldest[k.next])
	k.oldest[k.next] = code
	k.next = (k.next + 1) % maxRefused
}

// lane lets one through at a time.
type lane struct {
	turn    chan time.Time // has a value while the lane is free: when the next may begin
	waiting chan struct{}  // one for each that waits
}

// newLane returns a free lane in which up to room wait.
func newLane(room int) lane {
	l := lane{turn: make(chan time.Time, 1), waiting: make(chan struct{}, room)}
	l.turn <- time.Time{}
	return l
}

// enter waits for its turn. The error is a [*TooManyError] or that of ctx.
func (l *lane) enter(ctx context.Context) error {
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return &TooManyError{Of: unknownKeys, After: time.Second}
	}
	var begin time.Time
	select {
	case begin = <-l.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	pause := time.NewTimer(time.Until(begin))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		l.leave(begin)
		return ctx.Err()
	}
}

// leave gives the lane to the next, who begins at next or later.
func (l *lane) leave(next time.Time) { l.turn <- next }
