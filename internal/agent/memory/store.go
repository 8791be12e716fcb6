package memory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/text/rank"
)

const (
	// MaxFacts is how many facts a scope has at most, and how many proposals.
	MaxFacts = 500
	// maxFile is the size of the largest file that is read, in bytes.
	maxFile = 64 << 10
	// nearCopy is the share of words that two facts have in common from which on one is a copy of the other.
	nearCopy = 0.8
	// keepExpired is how long [Store.Prune] leaves facts that have expired.
	keepExpired = 30 * 24 * time.Hour

	proposed = "proposed"
)

// Files are where the facts of a [Store] are, each in a file of a directory such as user, agents/NAME or user/proposed. Methods may be
// called from several goroutines, and several processes may use one place.
type Files interface {
	// Lock keeps other writers away until unlock is called.
	Lock(ctx context.Context) (unlock func(), err error)
	// Dirs returns the directories in one, by name. One that is not there has none.
	Dirs(ctx context.Context, dir string) ([]string, error)
	// Facts returns the facts in a directory by the names of their files, and calls wrong for each file that cannot be used. Scopes are not set.
	Facts(ctx context.Context, dir string, wrong func(error)) ([]Fact, error)
	// Write replaces a file as a whole.
	Write(ctx context.Context, path string, data []byte) error
	// Move gives a file another path, in one step.
	Move(ctx context.Context, from, to string) error
	// Remove removes a file. It is no error if there is none.
	Remove(ctx context.Context, path string) error
}

// Store keeps facts in files. Its methods may be called from several goroutines, and several processes may use the same files.
type Store struct {
	Files Files
	Dir   string                        // of the files as users find them; "" if they are elsewhere
	Hide  func(text string) string      // replaces the secrets that the program knows; nil knows none
	Now   func() time.Time              // nil is time.Now
	Warn  func(context.Context, string) // reports a file that cannot be used; nil reports none
	// Meaning finds facts by vectors, too; nil finds them by words only.
	Meaning *Meaning

	mu     sync.Mutex
	tokens map[string]map[string]bool // words of facts by Sum, guarded by mu
	index  *index                     // of the last search, guarded by mu
}

// Place says which facts belong to a conversation. The names are those of directories, see [WorkspaceName] and [AgentName]; "" for none.
type Place struct{ Workspace, Agent string }

// dir returns the directory of a scope below that of the store, "" if the place has none.
func (p Place) dir(scope string) string {
	switch {
	case scope == User:
		return User
	case scope == Workspace && p.Workspace != "":
		return "workspaces/" + p.Workspace
	case scope == Agent && p.Agent != "":
		return "agents/" + p.Agent
	}
	return ""
}

// Scopes returns the scopes that the place has.
func (p Place) Scopes() []string {
	return slices.DeleteFunc(Scopes(), func(scope string) bool { return p.dir(scope) == "" })
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

// lock keeps other writers away until unlock is called.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = s.Files.Lock(ctx)
	return unlock, unwritten(err)
}

// unwritten is the error of a change that failed for err, nil for none.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Config, err, "the memory cannot be written")
}

// Places returns all places that have facts: that of the user, and one for each workspace and each agent.
func (s *Store) Places(ctx context.Context) []Place {
	places := []Place{{}}
	for _, kind := range []string{"workspaces", "agents"} {
		names, err := s.Files.Dirs(ctx, kind)
		s.warnOf(ctx, err)
		for _, name := range names {
			p := Place{Workspace: name}
			if kind == "agents" {
				p = Place{Agent: name}
			}
			places = append(places, p)
		}
	}
	return places
}

// warnOf reports why facts are not used, if err is not nil.
func (s *Store) warnOf(ctx context.Context, err error) {
	if s.Warn != nil && err != nil {
		s.Warn(ctx, "a fact of the memory is not used: "+err.Error())
	}
}

// List returns the facts of a place, or what is proposed there: by scope, and the ones that changed last first. Files that cannot be used are left out and reported.
func (s *Store) List(ctx context.Context, p Place, proposals bool) []Fact {
	var facts []Fact
	for _, scope := range p.Scopes() {
		facts = append(facts, s.scope(ctx, p, scope, proposals)...)
	}
	return facts
}

// both returns the facts that count at a place, and behind them the proposals.
func (s *Store) both(ctx context.Context, p Place) []Fact {
	return append(s.List(ctx, p, false), s.List(ctx, p, true)...)
}

// all returns the facts of all places, each once: those that count, proposals, or both.
func (s *Store) all(ctx context.Context, proposals ...bool) []Fact {
	var all []Fact
	for _, p := range s.Places(ctx) {
		scopes := p.Scopes()
		for _, proposed := range proposals {
			all = append(all, s.scope(ctx, p, scopes[len(scopes)-1], proposed)...) // that of the user is one of all places
		}
	}
	return all
}

// scope is List for one scope.
func (s *Store) scope(ctx context.Context, p Place, scope string, proposals bool) []Fact {
	dir := p.dir(scope)
	if proposals {
		dir = path.Join(dir, proposed)
	}
	facts, err := s.Files.Facts(ctx, dir, func(err error) { s.warnOf(ctx, err) })
	s.warnOf(ctx, err)
	for i := range facts {
		if facts[i].Scope, facts[i].Proposed = scope, proposals; scope != User {
			facts[i].Of = path.Base(p.dir(scope))
		}
	}
	slices.SortStableFunc(facts, func(a, b Fact) int { return b.Updated.Compare(a.Updated) })
	return facts
}

// Find returns the fact or the proposal with an id, or the name of its file, in any of the places. The error has code NotFound if there is none, and
// [fault.Usage] if there are several.
func (s *Store) Find(ctx context.Context, id string, places ...Place) (Fact, error) {
	var found, named []Fact
	var paths []string
	id = strings.TrimSuffix(id, ".md")
	name := "/" + id
	if i := strings.LastIndexByte(id, '-'); i >= 0 { // the name of a file without its ending
		id = id[i+1:]
	}
	for _, p := range places {
		for _, f := range s.both(ctx, p) {
			isNamed := strings.HasSuffix("/"+strings.TrimSuffix(f.Path, ".md"), name)
			if f.ID != id && !isNamed || slices.Contains(paths, f.Path) { // that of the user is one of all places
				continue
			}
			found, paths = append(found, f), append(paths, f.Path)
			if isNamed {
				named = append(named, f)
			}
		}
	}
	if len(named) == 1 {
		return named[0], nil
	}
	if len(found) > 1 {
		return Fact{}, fault.New(fault.Usage, "several files have the id %s: %s", found[0].ID, strings.Join(paths, ", ")).WithHint("give one of these names instead of the id, or give one of the files another id")
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Fact{}, fault.New(fault.NotFound, "the memory has no fact %q", id).WithHint("loki --memory list shows the facts with their ids")
}

// CopyError says that the memory has a fact already.
type CopyError struct{ Of Fact }

func (e *CopyError) Error() string {
	if e.Of.Proposed {
		return fmt.Sprintf("not stored: %s, %q, is proposed already and says much the same", e.Of.ID, e.Of.Title)
	}
	return fmt.Sprintf("not stored: fact %s, %q, says much the same: update it if it has changed", e.Of.ID, e.Of.Title)
}

// ErrChanged says that a fact was changed since it was read.
var ErrChanged = errors.New("the fact was changed meanwhile: read it again")

// errSecret says that a text is not stored.
var errSecret = errors.New("not stored: looks like a secret; say where it is kept instead")

// admit reports why a fact may not be written, whose own file, if it has one, does not count.
func (s *Store) admit(ctx context.Context, p Place, f *Fact) error {
	raw := append([]string{f.Title, f.Text}, f.Tags...)
	if err := f.tidy(); err != nil {
		return fault.Wrap(fault.Usage, err, "")
	}
	if slices.ContainsFunc(append(raw, f.Title, f.Text), func(part string) bool { return secret(part, s.Hide) }) {
		return fault.Wrap(fault.Usage, errSecret, "")
	}
	if p.dir(f.Scope) == "" {
		return fault.New(fault.Usage, "there is no scope %q here", f.Scope).WithHint("the scopes here: %s", strings.Join(p.Scopes(), ", "))
	}
	words, n := tokens(f), 0
	for _, other := range s.both(ctx, p) {
		switch {
		case other.ID == f.ID:
		case f.repeats(words, &other, s):
			return fault.Wrap(fault.Usage, &CopyError{other}, "")
		case other.Scope == f.Scope && other.Proposed == f.Proposed:
			n++
		}
	}
	if n >= MaxFacts {
		return fault.New(fault.Usage, "not stored: the scope %s has %d facts, and there is no room for more", f.Scope, MaxFacts).
			WithHint("forget some: loki --memory forget ID, or those that have expired: loki --memory prune")
	}
	return nil
}

// repeats reports whether another fact or proposal says much the same as f, which has these words.
func (f *Fact) repeats(words map[string]bool, other *Fact, s *Store) bool {
	switch {
	case other.ID == f.Changes, other.Expired(s.now()):
		return false
	case f.Forgets || other.Forgets:
		return f.Forgets == other.Forgets && f.Changes == other.Changes
	case other.Changes != f.Changes && other.Changes != "":
		return false
	}
	return similar(words, s.tokensOf(other))
}

// tokens returns the words of a fact by which copies are found.
func tokens(f *Fact) map[string]bool {
	words := make(map[string]bool)
	for _, t := range rank.Tokens(f.Text) {
		words[t] = true
	}
	return words
}

// tokensOf is [tokens] for a fact of the store, whose words are known from the last time.
func (s *Store) tokensOf(f *Fact) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	words, ok := s.tokens[f.Sum]
	if !ok {
		if len(s.tokens) > 4*MaxFacts || s.tokens == nil { // of facts that are there no more, too
			s.tokens = make(map[string]map[string]bool)
		}
		words = tokens(f)
		s.tokens[f.Sum] = words
	}
	return words
}

// similar reports whether two texts with these words say much the same.
func similar(a, b map[string]bool) bool {
	common := 0
	for t := range a {
		if b[t] {
			common++
		}
	}
	if all := len(a) + len(b) - common; all > 0 {
		return float64(common) >= nearCopy*float64(all)
	}
	return false
}

// Save adds a fact, or a proposal if it says so, and returns it with its id.
func (s *Store) Save(ctx context.Context, p Place, f Fact) (Fact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return f, err
	}
	defer unlock()
	f.ID = ""
	if err := s.admit(ctx, p, &f); err != nil {
		return f, err
	}
	f.Created, f.Updated = s.now().Truncate(time.Second), s.now().Truncate(time.Second)
	return s.add(ctx, p, f)
}

// add writes a fact under a new id.
func (s *Store) add(ctx context.Context, p Place, f Fact) (Fact, error) {
	dir := p.dir(f.Scope)
	for {
		var id [3]byte
		_, _ = rand.Read(id[:]) // it never fails
		if f.ID = hex.EncodeToString(id[:]); !s.taken(ctx, f.ID) {
			break
		}
	}
	if f.Proposed {
		dir = path.Join(dir, proposed)
	}
	f.Path = path.Join(dir, slug(f.Title)+"-"+f.ID+".md")
	return s.write(ctx, f)
}

// taken reports whether a file has the id.
func (s *Store) taken(ctx context.Context, id string) bool {
	_, err := s.Find(ctx, id, s.Places(ctx)...)
	return fault.CodeOf(err) != fault.NotFound
}

func (s *Store) write(ctx context.Context, f Fact) (Fact, error) {
	data := f.Encode()
	if err := s.Files.Write(ctx, f.Path, data); err != nil {
		return f, unwritten(err)
	}
	again, err := Decode(f.Path, data)
	f.Sum = again.Sum
	return f, err
}

// Change replaces the text of a fact and what change says, unless it has changed since its Sum was base; "" does not look.
func (s *Store) Change(ctx context.Context, p Place, id, base string, change func(*Fact)) (Fact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Fact{}, err
	}
	defer unlock()
	return s.change(ctx, p, id, base, change)
}

// change is Change while the store is locked.
func (s *Store) change(ctx context.Context, p Place, id, base string, change func(*Fact)) (Fact, error) {
	f, err := s.Find(ctx, id, p)
	if err != nil {
		return f, err
	}
	if base != "" && f.Sum != base {
		return f, fault.Wrap(fault.Usage, ErrChanged, "")
	}
	before := f
	change(&f)
	f.retitle(&before)
	if err := s.admit(ctx, p, &f); err != nil {
		return f, err
	}
	f.Updated = s.now().Truncate(time.Second)
	return s.write(ctx, f)
}

// Edit replaces a fact by what the user made of its file, unless it was changed meanwhile.
func (s *Store) Edit(ctx context.Context, f Fact, file string) (Fact, error) {
	edited, err := Decode(f.Path, []byte(file))
	if err != nil {
		return f, fault.Wrap(fault.Usage, err, "")
	}
	return s.Change(ctx, f.Place(), f.Path, f.Sum, func(now *Fact) {
		now.Title, now.Text, now.Tags, now.Pinned, now.Expires = edited.Title, edited.Text, edited.Tags, edited.Pinned, edited.Expires
	})
}

// Forget removes a fact or a proposal.
func (s *Store) Forget(ctx context.Context, p Place, id string) (Fact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Fact{}, err
	}
	defer unlock()
	f, err := s.Find(ctx, id, p)
	if err != nil {
		return f, err
	}
	return f, s.remove(ctx, f)
}

func (s *Store) remove(ctx context.Context, f Fact) error {
	return unwritten(s.Files.Remove(ctx, f.Path))
}

// Accept makes a proposal true: a new fact is kept, a change is made, or a fact is removed. What was changed since it was proposed stays, with
// an error.
func (s *Store) Accept(ctx context.Context, p Place, id string) (Fact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Fact{}, err
	}
	defer unlock()
	f, err := s.Find(ctx, id, p)
	switch {
	case err != nil:
		return f, err
	case !f.Proposed:
		return f, fault.New(fault.Usage, "fact %s is accepted already", f.ID)
	case f.Forgets:
		of, err := s.Find(ctx, f.Changes, p)
		if err == nil && of.Sum != f.Base {
			return f, fault.Wrap(fault.Usage, ErrChanged, "")
		}
		if err == nil {
			err = s.remove(ctx, of)
		}
		if err == nil || fault.CodeOf(err) == fault.NotFound { // it is gone, perhaps because this process was killed here before
			err = s.remove(ctx, f)
		}
		return f, err
	case f.Changes != "":
		of, err := s.Find(ctx, f.Changes, p)
		if err == nil && (of.Title != f.Title || of.Text != f.Text || of.Source != f.Source) { // else it was killed here before
			_, err = s.change(ctx, p, f.Changes, f.Base, func(of *Fact) {
				of.Title, of.Text, of.By, of.Source, of.Tainted = f.Title, f.Text, f.By, f.Source, f.Tainted
			})
		}
		if err == nil {
			err = s.remove(ctx, f)
		}
		return f, err
	}
	from := f.Path
	f.Proposed = false
	if err := s.admit(ctx, p, &f); err != nil {
		return f, err
	}
	f.Path = path.Join(path.Dir(path.Dir(from)), path.Base(from))
	return f, unwritten(s.Files.Move(ctx, from, f.Path))
}

// Prune removes the facts that expired 30 days ago or earlier, with proposals to change them, and returns them.
func (s *Store) Prune(ctx context.Context) ([]Fact, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var gone []Fact
	for _, f := range s.all(ctx, false, true) {
		if !f.Expired(s.now().Add(-keepExpired)) {
			continue
		}
		if err := s.remove(ctx, f); err != nil {
			return gone, err
		}
		gone = append(gone, f)
	}
	return gone, nil
}

var notSlug = text.Regexp(`[^a-z0-9]+`)

// slug returns the beginning of a file name for a title.
func slug(title string) string {
	s := strings.Trim(notSlug().ReplaceAllString(strings.ToLower(title), "-"), "-")
	s = strings.Trim(text.Cut(s, 40), "-")
	if s == "" {
		return "fact"
	}
	return s
}
