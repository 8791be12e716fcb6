package mcp

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"loki/internal/base/ask"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool/mcp/oauth"
)

// The limits for fields of [Options] that are not set.
const (
	DefaultConnectTimeout = 60 * time.Second // programs such as npx and uvx may have to download first
	DefaultListTimeout    = 30 * time.Second
	DefaultCallTimeout    = 2 * time.Minute
	DefaultMaxMessage     = 16 << 20
	DefaultMaxTools       = 10_000
	DefaultStopGrace      = 3 * time.Second

	slowStart = 8 * time.Second
)

// Options configure [NewPool]. The zero value of each field is its default.
type Options struct {
	Version string // of this program, sent to servers

	// Dir is the workspace: the root that servers are given, and the directory that relative paths in their entries mean. Empty
	// means no root, and the directory of this process.
	Dir string
	// Own returns a directory for the program of a server, by the name of the server in functions, that neither a model nor a
	// project writes in. Nil means that programs start in Dir. Kept are places in Dir that are not the work of a model, see
	// [environ.Apart].
	Own  func(server string) (dir string, err error)
	Kept []string
	// Admit is called before a program starts that takes code from the workspace, and with the Asker of the scope. An error
	// keeps it from starting. Nil admits none.
	Admit func(ctx context.Context, asker ask.Asker, s Server, code []Code) error
	// Child is the environment of servers that are programs, before their own
	// entries.
	Child environ.Child
	// Sandbox returns what confines servers that are programs and declare a level; nil confines none.
	Sandbox func() (*sandbox.Sandbox, error)
	// Getenv looks up variables that entries pass on, including the ones that Child withholds; nil
	// returns none.
	Getenv func(name string) (value string, ok bool)

	// Keep puts bytes of a kind, a MIME type as a server names it, into a file. Nil drops them, with a note.
	Keep func(kind string, data []byte) (file string, err error)
	// Open shows the user an address to which a server refers, and that the user has agreed to open. Nil declines all.
	Open func(address string)

	Secrets Secrets     // nil: references to secrets are errors
	Tokens  TokenSource // nil: no tokens
	// SignIn logs a user in to a remote server, which asks for it, unless there is another token than the refused one by now. The error
	// has code Config if no user can be asked. Nil logs in no one.
	SignIn func(ctx context.Context, asker ask.Asker, server Server, challenge oauth.Challenge, token string) error
	HTTP   http.RoundTripper // sends requests to remote servers; nil means a new one

	// Stderr gets the standard error of programs, in whole lines, each after "[ID] ".
	// Calls of Write do not overlap. Nil drops it.
	Stderr io.Writer
	// Slow is called when a program is not ready after a few seconds, with the last line of its standard error; nil if that
	// is of no interest. It may be called from several goroutines.
	Slow func(ctx context.Context, server, line string)
	// Log gets the log entries of servers, and errors. Nil drops them.
	Log *slog.Logger

	ConnectTimeout time.Duration // to start and initialize a server; 0 means DefaultConnectTimeout
	ListTimeout    time.Duration // for each page of a list and the like; 0 means DefaultListTimeout
	CallTimeout    time.Duration // for a call of a tool; 0 means DefaultCallTimeout
	StopGrace      time.Duration // for a server to end by itself; 0 means DefaultStopGrace
	MaxMessage     int           // bytes of the largest message; 0 means DefaultMaxMessage
	MaxTools       int           // that a server may have; 0 means DefaultMaxTools

	Pool PoolConfig

	// Acquired is called with how long each Acquire took that returned a connection; nil if it is of no interest.
	Acquired func(took time.Duration)
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
		// A transport of its own, so that connections of this pool can be closed.
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
	// Token returns the token for the server with that id, empty for none. It may be
	// called from several goroutines.
	Token(ctx context.Context, server string) (string, error)
}

// Rejecter is a TokenSource that is notified about tokens that a server did not accept.
// Then it is asked for another one, which is sent once if it is different.
type Rejecter interface {
	Reject(ctx context.Context, server, token string)
}
