package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"loki/internal/chat"
	"loki/internal/event"
	"loki/internal/fault"
	"loki/internal/graph"
	"loki/internal/provider"
	"loki/internal/run"
	"loki/internal/steps"
	"loki/internal/value"
)

// Cache keeps results of nodes for a time. Its methods may be called from several
// goroutines and processes. Whatever goes wrong in it is a miss.
type Cache interface {
	Get(key string) (data []byte, ok bool)
	Put(key string, data []byte, ttl time.Duration)
}

// retrying calls fn as often as the node's retry allows, with a growing wait between
// the attempts. The steps of each attempt are recorded apart.
func retrying[T any](ctx context.Context, r *Runner, t *run.Task, fn func(context.Context) (T, error)) (T, error) {
	policy := t.Node.Retry
	if policy == nil {
		return fn(ctx)
	}
	first := t.Steps
	defer func() { t.Steps = first }()
	for attempt := 1; ; attempt++ {
		if attempt > 1 {
			t.Steps = first.At(fmt.Sprintf("retry/%d", attempt))
		}
		failed := fmt.Sprintf("retry/%d/failed", attempt)
		if used, done, err := failedBefore(ctx, first, failed); err != nil || done {
			if err != nil {
				var none T
				return none, err
			}
			r.charge(t, used)
			t.Retries++
			continue
		}
		before := t.Usage
		result, err := fn(ctx)
		if err == nil || attempt >= policy.Attempts || final(ctx, err) || !repeatable(t.Node, err) {
			return result, err
		}
		if err := note(ctx, first, failed, failedAttempt{t.Usage.Sub(before)}); err != nil {
			return result, err
		}
		t.Retries++
		wait := max(backoff(policy, attempt, r.Random()), provider.RetryAfter(err))
		if emitErr := t.Events.Emit(ctx, event.Retry{Attempt: attempt, Error: short(err), Wait: wait}); emitErr != nil {
			return result, emitErr
		}
		if r.Sleep(ctx, wait) != nil {
			return result, context.Cause(ctx)
		}
	}
}

// final reports whether an error ends a node's work whatever its retries: it is
// cancelled, waits for a human, has no budget left, lacks what it stands on, or its run
// was taken over.
func final(ctx context.Context, err error) bool {
	switch fault.CodeOf(err) {
	case fault.Suspended, fault.Limit, fault.Canceled:
		return true
	}
	_, held := errors.AsType[*run.LeaseError](err)
	_, unfit := errors.AsType[*unfitError](err)
	return held || unfit || ctx.Err() != nil || errors.Is(err, run.ErrLeaseLost)
}

// errNotNoted keeps a look at a note from making one.
var errNotNoted = errors.New("not noted")

// failedAttempt is what is recorded of an attempt that a resumed run does not come back to:
// what it used counts all the same. Records of older versions have true in its place.
type failedAttempt struct {
	Usage chat.Usage `json:"usage"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *failedAttempt) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	type plain failedAttempt
	return json.Unmarshal(data, (*plain)(f))
}

// failedBefore reports whether an attempt was noted under key as failed, and what it used.
func failedBefore(ctx context.Context, s steps.Steps, key string) (used chat.Usage, failed bool, err error) {
	f, failed, err := noted[failedAttempt](ctx, s, key)
	return f.Usage, failed, err
}

// noted returns the note under key, if one was made.
func noted[T any](ctx context.Context, s steps.Steps, key string) (content T, found bool, err error) {
	content, err = steps.Do(ctx, s, steps.Step{Kind: steps.Note, Key: key}, func(context.Context) (T, error) {
		return content, errNotNoted
	})
	if errors.Is(err, errNotNoted) {
		return content, false, nil
	}
	return content, err == nil, err
}

// note records that something was done with, so that a resumed run does not come back
// to it.
func note[T any](ctx context.Context, s steps.Steps, key string, content T) error {
	_, err := steps.Do(ctx, s, steps.Step{Kind: steps.Note, Key: key}, func(context.Context) (T, error) { return content, nil })
	return err
}

// charge counts what attempts used that are not made again.
func (r *Runner) charge(t *run.Task, used chat.Usage) {
	addUsage(t, used)
	if r.Context.Budget != nil {
		r.Context.Budget.Spend(used)
	}
}

// repeatable reports whether another attempt at the node's work makes sense: not
// where a model's provider said that the same call will fail again.
func repeatable(n *graph.Node, err error) bool {
	if n.Type != graph.LLMNode {
		return true
	}
	return isTransient(err)
}

// backoff is the wait after the given attempt: exponential, with the random number
// from 0 up to 1 spreading it by the jitter to both sides.
func backoff(p *graph.Retry, attempt int, random float64) time.Duration {
	wait := float64(p.Backoff)
	for range attempt - 1 {
		wait = min(wait*p.Factor, float64(p.MaxBackoff))
	}
	wait = min(wait, float64(p.MaxBackoff))
	return time.Duration(wait * (1 + p.Jitter*(2*random-1)))
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func random() float64 { return rand.Float64() }

// lookup is a look into the cache, as it is recorded: a resumed run must not see
// another answer than the one it went on with.
type lookup struct {
	Hit   bool        `json:"hit"`
	Value value.Value `json:"value"`
}

// caching returns the node's result from the cache, or calls fn and keeps what it
// returns. What the result depends on is material, unless the node names a key.
func caching(ctx context.Context, r *Runner, t *run.Task, material func() []string, fn func(context.Context) (value.Value, error)) (value.Value, error) {
	policy := t.Node.Cache
	if policy == nil || r.Cache == nil {
		return fn(ctx)
	}
	parts := []string{string(t.Node.Type), r.Agent, r.Scripts.AgentDir, t.Node.ID}
	if policy.Key != nil {
		key, err := policy.Key.Strict(t.Draft)
		if err != nil {
			return value.Value{}, fmt.Errorf("cache: key: %w", err)
		}
		parts = append(parts, key)
	} else {
		parts = append(parts, material()...)
	}
	key := digest(parts)
	found, err := steps.Do(ctx, t.Steps, steps.Step{Kind: steps.Cache, Key: "cache", Name: key}, func(context.Context) (lookup, error) {
		data, ok := r.Cache.Get(key)
		if !ok {
			return lookup{}, nil
		}
		v, err := value.ParseJSON(data)
		return lookup{Hit: err == nil, Value: v}, nil // what cannot be read is a miss
	})
	if err != nil || found.Hit {
		return found.Value, err
	}
	result, err := fn(ctx)
	if err == nil {
		r.Cache.Put(key, result.AppendJSON(nil), policy.TTL)
	}
	return result, err
}

// digest is a name for parts that no other list of parts has.
func digest(parts []string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
