package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"loki/internal/base/process/sandbox"
)

// Type is the transport of a server.
type Type string

// The types.
const (
	Stdio Type = "stdio" // a program that is started; messages go over its standard input and output
	HTTP  Type = "http"  // Streamable HTTP
	SSE   Type = "sse"   // its predecessor, HTTP with server-sent events
)

// Expose selects what a model sees of a server.
type Expose string

// The ways.
const (
	Meta   Expose = "meta"   // functions to search, describe and invoke its tools
	Direct Expose = "direct" // its tools
)

// Server is one entry of mcp.json, with its references to secrets unresolved. It is
// not changed after it was read.
type Server struct {
	ID   string
	Type Type

	// For stdio.
	Command string // looked for on the PATH of Env, or of [Options].Env
	Args    []string
	Env     map[string]string // added to [Options].Env
	Dir     string            // working directory; empty means that of [Options]
	// Sandbox is what the program may do; the zero value means everything, as nothing is declared.
	Sandbox sandbox.Declaration

	// For http and sse.
	URL     string
	Headers map[string]string // sent with every request

	Expose   Expose
	Timeout  time.Duration // for one call of a tool; 0 means that of [Options]
	Disabled bool          // never selected
	// OAuth is the mapping "oauth" as JSON, for the package that provides tokens; nil without
	// one. NoOAuth says that it is false.
	OAuth   json.RawMessage
	NoOAuth bool

	StartTimeout time.Duration // to start and initialize it; 0 means that of [Options]

	// IdleTimeout is how long an idle connection is kept. It counts only with
	// HasIdleTimeout; otherwise the pool decides.
	IdleTimeout    time.Duration
	HasIdleTimeout bool

	// Err is the mistake in the entry. Only uses of this server return it.
	Err error

	file string // for messages
	slug string // replaces ID in the names of functions; unique within the file
}

// File is the content of mcp.json. The zero File has no servers.
type File struct {
	Path     string
	Key      string   // the member that lists the servers
	Servers  []Server // in the order of the file
	Warnings []Warning
}

// Warning is a part of the file that has no effect.
type Warning struct {
	Path         string
	Line, Column int // counted from 1; 0 if unknown
	Text         string
}

func (w Warning) String() string { return at(w.Path, w.Line, w.Column) + ": " + w.Text }

func at(path string, line, column int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d:%d", path, line, column)
}

// Names returns what a setting may name: the enabled servers and, if there are some, aliases, ascending.
func (f *File) Names(aliases map[string]string) []string {
	var names []string
	for _, server := range f.Servers {
		if !server.Disabled {
			names = append(names, server.ID)
		}
	}
	if len(names) == 0 {
		return nil
	}
	names = slices.AppendSeq(names, maps.Keys(aliases))
	slices.Sort(names)
	return slices.Compact(names)
}

// Add adds servers, in place of the ones with their ids.
func (f *File) Add(servers []Server) {
	for _, s := range servers {
		f.Servers = slices.DeleteFunc(f.Servers, func(old Server) bool { return old.ID == s.ID })
		f.Servers = append(f.Servers, s)
	}
	setSlugs(f.Servers)
}

// Lookup returns the server with that id.
func (f *File) Lookup(id string) (Server, bool) {
	for _, s := range f.Servers {
		if s.ID == id {
			return s, true
		}
	}
	return Server{}, false
}

// IDs returns the ids of the servers, in the order of the file.
func (f *File) IDs() []string {
	ids := make([]string, len(f.Servers))
	for i, s := range f.Servers {
		ids[i] = s.ID
	}
	return ids
}
