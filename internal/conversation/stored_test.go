package conversation_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/conversation"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
)

func TestStoredSessions(t *testing.T) {
	store, err := filestore.New(filestore.Options{Dir: filepath.Join(t.TempDir(), "sessions"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	service := &conversation.Service{Sessions: func() (session.Store, error) { return store, nil }}
	ctx := t.Context()
	s, err := store.Create(ctx, "", "a", session.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Begin(ctx, sessiontest.Turn(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.DeleteSession(ctx, "", "a"); fault.CodeOf(err) != fault.Usage {
		t.Errorf("while a question is answered: %v", err)
	}
	if err := service.RenameSession(ctx, "", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(ctx, sessiontest.Turn(1).Reply, sessiontest.Turn(1).Usage); err != nil {
		t.Fatal(err)
	}
	service.Recents.Hide = func(text string) string { return strings.ReplaceAll(text, "sk-1234", "***") }
	if err := service.RenameSession(ctx, "", "b", "my sk-1234"); fault.CodeOf(err) != fault.Usage || strings.Contains(err.Error(), "sk-1234") {
		t.Errorf("a name with a secret: %v", err)
	}
	for _, name := range []string{"b", string(s.ID())} {
		if id, err := service.StoredID(ctx, "", name); err != nil || id != s.ID() {
			t.Errorf("%s means %s, %v", name, id, err)
		}
	}
	for _, name := range []string{"a", string(session.NewID())} {
		if _, err := service.DeleteSession(ctx, "", name); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	if _, err := service.DeleteSession(ctx, "", "b"); err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
