package auth

import "context"

// Owner is whose session or run something is. A nil *Owner is that of what was made on the
// command line, or on a server that asks for no key.
type Owner struct {
	Subject string `json:"subject"`
	KeyID   string `json:"key_id,omitzero"` // of the key that it was made with
}

// Access is the rule about the sessions and runs of a server: each subject sees and changes
// its own, and no others. To one who may not see it, a thing does not exist. The scope
// [AdminSessions] goes beyond that rule. Whether a request may see or change anything at all
// is a matter of scopes and was decided before.
type Access struct {
	AdoptUnowned bool // all may see what has no owner; otherwise only [AdminSessions] may
}

// View is what of all sessions and runs a subject sees. A nil *View is all of them.
type View struct {
	Subject string // sees its own
	Unowned bool   // and what has no owner
}

// View returns what who sees.
func (a Access) View(who Identity) *View {
	if who.Anonymous() || who.Allows(AdminSessions) {
		return nil
	}
	return &View{Subject: who.Subject, Unowned: a.AdoptUnowned}
}

// Includes reports whether what owner owns is in v.
func (v *View) Includes(owner *Owner) bool {
	switch {
	case v == nil:
		return true
	case owner == nil:
		return v.Unowned
	}
	return owner.Subject == v.Subject && v.Subject != ""
}

// Owner returns the owner of what who makes.
func (a Access) Owner(who Identity) *Owner {
	if who.Anonymous() {
		return nil
	}
	return &Owner{Subject: who.Subject, KeyID: who.KeyID}
}

// Claim returns who owns a thing after who, who sees it, changed it: what had no owner
// belongs to the first who changes it. It is owner itself if that stays.
func (a Access) Claim(who Identity, owner *Owner) *Owner {
	if owner != nil {
		return owner
	}
	return a.Owner(who)
}

type ownerKey struct{}

// WithOwner returns a context of work that belongs to owner, which need not be the subject that asks for it.
func WithOwner(ctx context.Context, owner *Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerOf returns whose the work is that is done with ctx; nil if it is no one's, or that is unknown.
func OwnerOf(ctx context.Context) *Owner {
	owner, _ := ctx.Value(ownerKey{}).(*Owner)
	return owner
}
