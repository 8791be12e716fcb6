package auth

import (
	"slices"
	"strings"
)

// Scope names a kind of request that a key allows: a verb and what it is about, with a colon
// between them.
type Scope string

// The scopes that endpoints ask for.
const (
	ReadModels    Scope = "read:models"
	ReadAgents    Scope = "read:agents"
	ReadRoles     Scope = "read:roles"
	ReadRAGs      Scope = "read:rags"
	RunAgents     Scope = "run:agents"
	ReadSessions  Scope = "read:sessions"
	WriteSessions Scope = "write:sessions"
	ReadRuns      Scope = "read:runs"
	WriteRuns     Scope = "write:runs"
	ReadMemory    Scope = "read:memory"
	WriteMemory   Scope = "write:memory"

	ReadSchedules  Scope = "read:schedules"
	WriteSchedules Scope = "write:schedules"

	AdminSessions Scope = "admin:sessions" // see and change the sessions and runs of all
	AdminRAGs     Scope = "admin:rags"
	AdminMCP      Scope = "admin:mcp"
	AdminMetrics  Scope = "admin:metrics"
)

// The short forms, each for several scopes. [All] is for every one.
const (
	Read  Scope = "read"  // all that begin with read:
	Write Scope = "write" // all that begin with write:, and run:agents
	All   Scope = "*"
)

// Scopes returns all scopes and then the short forms.
func Scopes() []Scope {
	return []Scope{
		ReadModels, ReadAgents, ReadRoles, ReadRAGs, RunAgents, ReadSessions, WriteSessions, ReadRuns, WriteRuns, ReadSchedules, WriteSchedules, ReadMemory, WriteMemory,
		AdminSessions, AdminRAGs, AdminMCP, AdminMetrics, Read, Write, All,
	}
}

// Known reports whether s is one of [Scopes].
func (s Scope) Known() bool { return slices.Contains(Scopes(), s) }

// covers reports whether a key with scope s is allowed what asks for want.
func (s Scope) covers(want Scope) bool {
	switch s {
	case want, All:
		return true
	case Read:
		return strings.HasPrefix(string(want), "read:")
	case Write:
		return want == RunAgents || strings.HasPrefix(string(want), "write:")
	}
	return false
}

// ScopeNames returns the texts of [Scopes].
func ScopeNames() []string {
	var names []string
	for _, s := range Scopes() {
		names = append(names, string(s))
	}
	return names
}
