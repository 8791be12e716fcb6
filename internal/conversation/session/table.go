package session

import (
	"runtime"
	"sync"
	"weak"
)

// Table holds the open sessions of a store, so that all callers that open one get the
// same. It does not keep them alive. The zero value is empty. Its methods may be
// called from several goroutines. It is for stores.
type Table struct {
	mu   sync.Mutex
	open map[tableKey]weak.Pointer[Session]
}

// tableKey is a session by its id, or, if it was not stored when it was added, by its
// alias.
type tableKey struct {
	scope Scope
	id    ID
	alias Alias
}

// Open returns the session called id, nil if it is not open.
func (t *Table) Open(scope Scope, id ID) *Session {
	return t.get(tableKey{scope: scope, id: id})
}

// PendingSession returns the session called alias that was added before it was stored, nil if
// there is none.
func (t *Table) PendingSession(scope Scope, alias Alias) *Session {
	s := t.get(tableKey{scope: scope, alias: alias})
	if s == nil || s.Alias() != alias {
		return nil
	}
	return s
}

func (t *Table) get(k tableKey) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[k].Value()
}

// Add returns the session that is open under the id of s, and s, which it notes, if
// there is none.
func (t *Table) Add(s *Session) *Session {
	return t.add(tableKey{scope: s.scope, id: s.ID()}, s, false)
}

// Begin is like Add for a session that is not stored yet, and its alias.
func (t *Table) Begin(s *Session) *Session {
	alias := s.Alias()
	if alias != "" {
		k := tableKey{scope: s.scope, alias: alias}
		old := t.get(k)
		if first := t.add(k, s, old != nil && old.Alias() != alias); first != s {
			return first
		}
	}
	return t.Add(s)
}

// add notes s under k. Unless replace is true, a session that is there stays.
func (t *Table) add(k tableKey, s *Session, replace bool) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.open[k].Value(); old != nil && !replace {
		return old
	}
	if t.open == nil {
		t.open = make(map[tableKey]weak.Pointer[Session])
	}
	t.open[k] = weak.Make(s)
	runtime.AddCleanup(s, t.sweep, k)
	return s
}

// sweep removes the entry of a session that is gone, unless another one is there now.
func (t *Table) sweep(k tableKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.open[k]; ok && p.Value() == nil {
		delete(t.open, k)
	}
}

// SetAlias sets the new alias of the session called id, if it is open.
func (t *Table) SetAlias(scope Scope, id ID, alias Alias) {
	if s := t.Open(scope, id); s != nil {
		s.noteAlias(alias)
	}
}

// Forget removes the session called id, which has been deleted.
func (t *Table) Forget(scope Scope, id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[tableKey{scope: scope, id: id}].Value()
	for k, p := range t.open {
		if k.id == id && k.scope == scope || s != nil && p.Value() == s {
			delete(t.open, k)
		}
	}
}
