// Package auth knows who calls the server, and what they may do.
package auth

import (
	"slices"
	"strings"
)

// Scope is a right that an endpoint asks for, such as "read:models".
type Scope string

// The scopes.
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
	AdminSessions Scope = "admin:sessions"
	AdminRAGs     Scope = "admin:rags"
	AdminMCP      Scope = "admin:mcp"
	AdminMetrics  Scope = "admin:metrics"
)

// Identity is who made a request.
type Identity struct {
	Subject string
	KeyID   string   // empty if there is no key
	Scopes  []string // scopes, or their short forms "read", "write" and "*"
}

// Allows reports whether the identity has scope. Everyone has the empty one.
func (i Identity) Allows(scope Scope) bool {
	kind, _, _ := strings.Cut(string(scope), ":")
	return scope == "" || slices.ContainsFunc(i.Scopes, func(s string) bool {
		return s == "*" || s == string(scope) || s == kind && (s == "read" || s == "write")
	})
}
