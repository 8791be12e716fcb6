package worktree

import "loki/internal/base/sandbox"

// Finish is what happens at the end with work that is not merged.
type Finish string

// What may happen. The zero value asks.
const (
	Ask       Finish = "ask"
	KeepIt    Finish = "branch"
	DiscardIt Finish = "discard"
)

// Dirty says what happens with the uncommitted changes of the checkout. The zero value leaves them.
type Dirty string

// Include takes the changes of tracked files along.
const Include Dirty = "include"

// Settings are what the key worktree says.
type Settings struct {
	Base   string // a commit; empty means HEAD
	Dirty  Dirty
	Share  []Share
	Setup  Setup
	Finish Finish
}

// Share is a path below the root that git ignores, and that a worktree gets.
type Share struct {
	Path string
	Link bool // or else a copy
}

// Setup is a command that prepares a new worktree. The zero value is none.
type Setup struct {
	Command string
	Level   sandbox.Level // empty means [sandbox.Write]
	Hosts   []string
}
