package graph

import (
	"path/filepath"

	"loki/internal/base/process/sandbox"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// Worktree says how an agent works in a copy of the repository.
type Worktree struct {
	Base   string // a commit; empty means HEAD
	Dirty  Dirty
	Share  []SharedPath
	Setup  Setup
	Finish Finish

	Written value.Value // as it stands in the file
}

// Finish is what happens at the end with work that is not merged. The zero value asks.
type Finish string

// What may happen.
const (
	Ask       Finish = "ask"
	KeepIt    Finish = "branch"
	DiscardIt Finish = "discard"
)

// Dirty says what happens with the uncommitted changes of the checkout. The zero value leaves them.
type Dirty string

// What may happen with them. Include takes the changes of tracked files along.
const (
	Leave   Dirty = "leave"
	Include Dirty = "include"
)

// SharedPath is a path below the root that git ignores, and that a worktree gets.
type SharedPath struct {
	Path string
	Link bool // or else a copy
}

// Setup is a command that prepares a new worktree. The zero value is none.
type Setup struct {
	Command string
	sandbox.Declaration
}

// worktreeShape is the JSON Schema of the key worktree.
const worktreeShape = `{"anyOf":[{"type":"boolean"},{"type":"object","additionalProperties":false,"properties":{
	"base":{"type":["string","number"]},"dirty":{"enum":["leave","include"]},"finish":{"enum":["ask","branch","discard"]},
	"share":{"type":"object","additionalProperties":{"enum":["copy","link"]}},
	"setup":{"anyOf":[{"type":"string"},{"type":"object","additionalProperties":false,"required":["command"],"properties":{
		"command":{"type":"string"},"sandbox":{"enum":["read","write","network","full"]},"hosts":{"type":"array","items":{"type":"string"}}}}]}}}]}`

// ReadWorktree reads the key worktree: true, false or a mapping. It returns nil for none.
func ReadWorktree(m *yamldoc.Map) *Worktree {
	n := m.Get("worktree")
	if n == nil || n.Kind() == yamldoc.Null {
		return nil
	}
	w := &Worktree{Written: n.FiniteValue()}
	if n.Kind() == yamldoc.Bool {
		if on, _ := n.Bool(); !on {
			return nil
		}
		return w
	}
	in := section(m, "worktree", "{dirty: include, setup: make deps}")
	in.Text("base", &w.Base)
	yamldoc.Choice(in, "dirty", &w.Dirty, Leave, Include)
	yamldoc.Choice(in, "finish", &w.Finish, Ask, KeepIt, DiscardIt)
	share := in.Map("share")
	for e := range share.All() {
		how := "copy"
		yamldoc.Choice(share, e.Key, &how, "copy", "link")
		if path := filepath.Clean(e.Key); !filepath.IsLocal(path) || path == "." {
			e.Node.KeyErrorf("%q is not a path in the repository", e.Key)
		} else {
			w.Share = append(w.Share, SharedPath{Path: path, Link: how == "link"})
		}
	}
	w.Setup.Level = sandbox.Write
	if s := in.Get("setup"); s != nil && s.Kind() == yamldoc.Mapping {
		s.Map().Text("command", &w.Setup.Command)
		s.Map().Require("command")
		s.Map().Texts("hosts", &w.Setup.Hosts)
		yamldoc.Choice(s.Map(), "sandbox", &w.Setup.Level, sandbox.Read, sandbox.Write, sandbox.Network, sandbox.Full)
		if len(w.Setup.Hosts) > 0 && w.Setup.Level != sandbox.Network {
			s.Errorf("hosts need the level network, not %s", w.Setup.Level)
		}
		s.Map().Done()
	} else if s != nil {
		in.Text("setup", &w.Setup.Command)
	}
	in.Done()
	return w
}
