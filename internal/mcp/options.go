package mcp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"loki/internal/environ"
)

// The limits that apply where [Options] say nothing.
const (
	DefaultConnectTimeout = 60 * time.Second // programs such as npx and uvx may have to download first
	DefaultListTimeout    = 30 * time.Second
	DefaultCallTimeout    = 2 * time.Minute
	DefaultMaxMessage     = 16 << 20
	DefaultMaxTools       = 10_000
	DefaultStopGrace      = 3 * time.Second
)

// Options configure [NewPool]. The zero value of each field is its default.
type Options struct {
	Version string // of this program, which servers are told

	// Dir is the working directory: servers are told that it is the root of what they may
	// work on, and programs are started there. Empty means no root, and this process's.
	Dir string
	// Child is what servers that are programs get, before their own entries.
	Child environ.Child
	// Getenv looks up variables that entries pass on, those that Child withholds included;
	// nil knows none.
	Getenv func(name string) (value string, ok bool)

	Secrets Secrets           // nil: references to secrets are errors
	Tokens  TokenSource       // nil: no tokens
	HTTP    http.RoundTripper // carries requests to remote servers; nil means one of its own

	// Stderr gets what programs print there, in whole lines, each after "[ID] ". Calls of
	// Write do not overlap. Nil drops it.
	Stderr io.Writer
	// Log gets what servers log, and what goes wrong. Nil drops it.
	Log *slog.Logger

	ConnectTimeout time.Duration // to start and initialize a server; 0 means DefaultConnectTimeout
	ListTimeout    time.Duration // for each page of a list and the like; 0 means DefaultListTimeout
	CallTimeout    time.Duration // for a call of a tool; 0 means DefaultCallTimeout
	StopGrace      time.Duration // for a server to end by itself; 0 means DefaultStopGrace
	MaxMessage     int           // bytes of the largest message; 0 means DefaultMaxMessage
	MaxTools       int           // that a server may have; 0 means DefaultMaxTools

	Pool PoolConfig
}

func (o Options) withDefaults() Options {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, DefaultConnectTimeout)
	o.ListTimeout = cmp.Or(o.ListTimeout, DefaultListTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	o.StopGrace = cmp.Or(o.StopGrace, DefaultStopGrace)
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	o.MaxTools = cmp.Or(o.MaxTools, DefaultMaxTools)
	o.Version = cmp.Or(o.Version, "dev")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stderr != nil {
		o.Stderr = &oneAtATime{w: o.Stderr}
	}
	if o.HTTP == nil {
		// Its own, so that connections of this pool can be closed.
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			o.HTTP = t.Clone()
		} else {
			o.HTTP = http.DefaultTransport
		}
	}
	o.Pool = o.Pool.withDefaults()
	return o
}

// TokenSource provides access tokens for remote servers.
type TokenSource interface {
	// Token returns the token to send to the server of that id, empty for none. It may be
	// called from several goroutines.
	Token(ctx context.Context, server string) (string, error)
}

// Rejecter is a TokenSource that wants to know of tokens which a server did not accept. It
// is told before it is asked for another one, which is sent once if it is different.
type Rejecter interface {
	Reject(ctx context.Context, server, token string)
}
