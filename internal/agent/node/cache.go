package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"loki/internal/base/fault/steps"
	"loki/internal/base/value"
	"loki/internal/workflow/graph"
	"loki/internal/workflow/run"
)

// Cache keeps results of nodes for a time. Its methods may be called from several
// goroutines and processes. A failure of the cache is a miss.
type Cache interface {
	Get(key string) (data []byte, ok bool)
	Put(key string, data []byte, ttl time.Duration)
}

// lookup is the recorded result of a look into the cache: a resumed run must see the result
// that it continued with.
type lookup struct {
	Hit   bool        `json:"hit"`
	Value value.Value `json:"value"`
}

// withCache returns the node's result from the cache, or calls fn and keeps what it
// returns. The key is made of material, unless the node has a key of its own.
func withCache(ctx context.Context, r *Runner, t *run.Task, material func() []string, fn func(context.Context) (value.Value, error)) (value.Value, error) {
	policy := t.Node.Cache
	if policy == nil || r.Cache == nil {
		return fn(ctx)
	}
	parts := []string{string(t.Node.Type), r.Agent, r.Scripts.AgentDir, graph.InnerName(r.static, t.Node.ID)}
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

// digest returns a name for parts that differs from that of other lists.
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
