package knowledge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/knowledge/rag"
	"loki/internal/tool/builtin/fsys"
)

// Pool are the open knowledge bases of the process, each once: its vectors take a lot of memory.
// The zero Pool has none and is ready.
type Pool struct {
	opening fsys.Locks // by file: one opens it, and others wait

	mu   sync.Mutex
	open map[string]*openBase // by file; guarded by mu
	idle []*openBase          // those of open without users, the one that was used last at the end; guarded by mu

	temps temps
}

// maxIdle is how many knowledge bases stay open for the next user.
const maxIdle = 2

// openBase is an open knowledge base.
type openBase struct {
	*rag.Base
	file  string
	state os.FileInfo // of the file when it was opened; nil without one
	users int         // guarded by the mutex of its Pool
}

// acquire returns the knowledge base at a place. One that was replaced since is opened again;
// its present users keep the old one. release is called once.
func (s *Pool) acquire(ctx context.Context, a *Service, p place) (b *rag.Base, release func(), err error) {
	unlock, err := s.opening.Lock(ctx, p.file)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	state, _ := os.Stat(p.file) // nil if there is none
	one := s.take(p.file, state)
	if one == nil {
		store, err := a.storeAt(p.file)
		if err != nil {
			return nil, nil, err
		}
		base, err := rag.Open(ctx, p.name, store, a.Models)
		if err != nil {
			return nil, nil, err
		}
		if denied := a.Loader().Denied; denied != nil { // the base may be older than the rule
			base.Deny(func(path string) bool {
				if _, rest, found := strings.Cut(path, ":"); found && filepath.IsAbs(rest) { // for a document loader
					path = rest
				}
				return filepath.IsAbs(path) && denied(path) != nil
			})
		}
		one = &openBase{Base: base, file: p.file, state: state, users: 1}
		s.put(one)
	}
	return one.Base, sync.OnceFunc(func() { s.release(one) }), nil
}

// take returns the open knowledge base of a file for one more user, nil if there is none with this
// state of the file.
func (s *Pool) take(file string, state os.FileInfo) *openBase {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[file]
	if one == nil || !sameState(one.state, state) {
		return nil
	}
	s.idle = slices.DeleteFunc(s.idle, func(o *openBase) bool { return o == one })
	one.users++
	return one
}

func sameState(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil // it is in a database
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// put has others share a knowledge base, in place of an older one.
func (s *Pool) put(one *openBase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]*openBase)
	}
	if before := s.open[one.file]; before != nil && before.users == 0 {
		s.idle = slices.DeleteFunc(s.idle, func(o *openBase) bool { return o == before })
		_ = before.Close() // it was only read
	}
	s.open[one.file] = one
}

// release gives back what acquire returned.
func (s *Pool) release(one *openBase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
	switch {
	case one.users > 0:
		return
	case s.open[one.file] != one:
		_ = one.Close() // it was only read
		return
	case one.state == nil: // whether it was replaced will not be seen
		delete(s.open, one.file)
		_ = one.Close()
		return
	}
	s.idle = append(s.idle, one)
	if len(s.idle) > maxIdle {
		delete(s.open, s.idle[0].file)
		_ = s.idle[0].Close()
		s.idle = s.idle[1:]
	}
}

// Close closes the knowledge bases that have no users, and removes the temporary ones.
func (s *Pool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.temps.remove()}
	for _, one := range s.idle {
		errs = append(errs, one.Close())
		delete(s.open, one.file)
	}
	s.idle = nil
	return errors.Join(errs...)
}
