package auth

import "testing"

func TestAccess(t *testing.T) {
	alice := Identity{Subject: "alice", KeyID: "a", Scopes: []Scope{Read, Write}}
	admin := Identity{Subject: "root", KeyID: "r", Scopes: []Scope{AdminSessions}}
	all := Identity{Subject: "star", KeyID: "s", Scopes: []Scope{All}}
	own, others := &Owner{Subject: "alice", KeyID: "an older key"}, &Owner{Subject: "bob", KeyID: "a"}
	for _, tt := range []struct {
		name  string
		who   Identity
		owner *Owner
		adopt bool
		sees  bool
		claim string // the subject that owns it after a change
	}{
		{"own", alice, own, false, true, "alice"},
		{"others", alice, others, true, false, "bob"},
		{"unowned", alice, nil, false, false, "alice"},
		{"unowned_adopted", alice, nil, true, true, "alice"},
		{"admin_others", admin, others, false, true, "bob"},
		{"admin_unowned", admin, nil, false, true, "root"},
		{"star_others", all, others, false, true, "bob"},
		{"anonymous_others", Nobody(), others, false, true, "bob"},
		{"anonymous_unowned", Nobody(), nil, false, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := Access{AdoptUnowned: tt.adopt}
			if sees := a.View(tt.who).Includes(tt.owner); sees != tt.sees {
				t.Errorf("sees %t", sees)
			}
			claim := ""
			if o := a.Claim(tt.who, tt.owner); o != nil {
				claim = o.Subject
			}
			if claim != tt.claim {
				t.Errorf("owned by %q after a change", claim)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	for _, tt := range []struct {
		has, wants Scope
		want       bool
	}{
		{ReadRuns, ReadRuns, true},
		{ReadRuns, WriteRuns, false},
		{Read, ReadRuns, true},
		{Read, WriteRuns, false},
		{Read, RunAgents, false},
		{Write, WriteSessions, true},
		{Write, RunAgents, true},
		{Write, ReadRuns, false},
		{Write, AdminSessions, false},
		{Read, AdminMetrics, false},
		{AdminSessions, ReadSessions, false},
		{All, AdminMCP, true},
		{"read:run", ReadRuns, false},
		{ReadRuns, "", true},
	} {
		if got := (Identity{Subject: "a", Scopes: []Scope{tt.has}}).Allows(tt.wants); got != tt.want {
			t.Errorf("%s allows %s: %t", tt.has, tt.wants, got)
		}
	}
	if (Identity{}).Allows(ReadModels) {
		t.Error("the zero identity is allowed something")
	}
}

func TestIsOneOf(t *testing.T) {
	carol := Identity{Subject: "carol", Groups: []string{"editors", ""}}
	for _, tt := range []struct {
		names []string
		want  bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"bob", "carol"}, true},
		{[]string{"editors"}, true},
		{[]string{"editor", "Editors", "carol2"}, false},
	} {
		if got := carol.IsOneOf(tt.names); got != tt.want {
			t.Errorf("%q: %v", tt.names, got)
		}
	}
	if (Identity{}).IsOneOf([]string{""}) {
		t.Error("no one is one of no one")
	}
}
