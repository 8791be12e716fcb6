package conversation_test

import (
	"context"
	"errors"
	"testing"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

// guest begins a conversation of a subject, as a server does.
func guest(talks *conversation.Service, access auth.Access, subject string, scopes ...auth.Scope) *conversation.Conversation {
	who := auth.Identity{Subject: subject, KeyID: subject + "1", Scopes: scopes}
	return talks.Begin(conversation.Options{View: access.View(who), Owner: access.Owner(who)})
}

func TestOwners(t *testing.T) {
	talks, runs := recorded(t, "1", "2", "3", "4", "5", "6")
	store := memstore.New(session.Options{})
	talks.Sessions = func() (session.Store, error) { return store, nil }
	talks.Roles = func() role.Library { return role.Library{Dir: t.TempDir(), Bundled: roles} }
	tell := func(c *conversation.Conversation, name string) error {
		t.Helper()
		defer func() {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if err := c.UseSession(t.Context(), name); err != nil {
			return err
		}
		_, err := c.Tell(t.Context(), question("?"))
		return err
	}
	owner := func(alias session.Alias) string {
		t.Helper()
		id, err := store.Resolve(t.Context(), "", alias)
		if err != nil {
			t.Fatal(err)
		}
		o, err := store.Owner(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			return ""
		}
		return o.Subject
	}
	strict, open := auth.Access{}, auth.Access{AdoptUnowned: true}

	if err := tell(talks.Begin(conversation.Options{}), "shell"); err != nil || owner("shell") != "" {
		t.Fatalf("a session of the command line belongs to %q, error %v", owner("shell"), err)
	}
	if err := tell(guest(talks, strict, "ada"), "hers"); err != nil || owner("hers") != "ada" {
		t.Fatalf("her session belongs to %q, error %v", owner("hers"), err)
	}
	id, err := store.Resolve(t.Context(), "", "hers")
	if err != nil {
		t.Fatal(err)
	}
	if err := tell(guest(talks, open, "bob"), "hers"); !errors.Is(err, session.ErrAliasInUse) {
		t.Errorf("bob, by name: %v", err)
	}
	for _, name := range []string{string(id), string(session.NewID())} { // they cannot be told apart
		if err := tell(guest(talks, open, "bob"), name); !errors.Is(err, session.ErrNotFound) || fault.CodeOf(err) != fault.NotFound {
			t.Errorf("bob, by id: %v", err)
		}
	}
	if err := tell(guest(talks, strict, "bob"), "shell"); !errors.Is(err, session.ErrAliasInUse) || owner("shell") != "" {
		t.Errorf("bob in a session of no owner: %v", err)
	}
	if err := tell(guest(talks, strict, "root", auth.AdminSessions), "hers"); err != nil || owner("hers") != "ada" {
		t.Errorf("an admin: %v, and then it belongs to %q", err, owner("hers"))
	}
	if err := tell(guest(talks, open, "bob"), "shell"); err != nil || owner("shell") != "bob" {
		t.Errorf("bob adopts: %v, and then it belongs to %q", err, owner("shell"))
	}
	if err := tell(talks.Begin(conversation.Options{}), "shell"); err != nil || owner("shell") != "bob" {
		t.Errorf("the command line: %v, and then it belongs to %q", err, owner("shell"))
	}

	runStore, err := runs.Open("")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := runStore.Runs(t.Context(), run.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var owners []string
	for _, i := range infos {
		name := ""
		if i.Owner != nil {
			name = i.Owner.Subject
		}
		owners = append(owners, name)
	}
	if got, want := len(owners), 5; got != want || owners[0] != "" || owners[1] != "bob" || owners[2] != "root" || owners[3] != "ada" || owners[4] != "" {
		t.Errorf("the runs belong to %q", owners)
	}
}

// TestOwnersBeginOneName has two subjects begin a session of the same name, neither of which is
// stored.
func TestOwnersBeginOneName(t *testing.T) {
	talks, _ := recorded(t)
	store := memstore.New(session.Options{})
	talks.Sessions = func() (session.Store, error) { return store, nil }
	talks.Roles = func() role.Library { return role.Library{Dir: t.TempDir(), Bundled: roles} }
	ada, bob := guest(talks, auth.Access{}, "ada"), guest(talks, auth.Access{AdoptUnowned: true}, "bob")
	if err := ada.UseSession(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it must not wait for her
	if err := bob.UseSession(ctx, "a"); !errors.Is(err, session.ErrAliasInUse) {
		t.Errorf("bob: %v", err)
	}
	if err := errors.Join(ada.Close(t.Context()), bob.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
