package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/llm/chat"
)

// Recent is the last conversation of a directory: a stored session, or a turn outside of
// sessions.
type Recent struct {
	Dir   string    `json:"dir"` // absolute
	At    time.Time `json:"at"`
	Agent string    `json:"agent,omitempty"` // as it is found: its name or the path of its directory; "" for none
	Scope Scope     `json:"scope,omitempty"` // of the agent's sessions

	Session ID `json:"session,omitempty"` // "" for a turn

	// Of a turn: the settings that it was asked under, as [State.Encode] writes them, and what
	// a session would have recorded.
	State string            `json:"state,omitempty"`
	Role  []chat.Message    `json:"role,omitempty"`
	User  chat.Message      `json:"user,omitzero"`
	Reply []chat.Message    `json:"reply,omitempty"`
	Usage chat.Usage        `json:"usage,omitzero"`
	URLs  map[string]string `json:"data_urls,omitempty"`
}

// Turn returns the turn that r is.
func (r Recent) Turn() Turn {
	return Turn{Role: r.Role, User: r.User, Reply: r.Reply, Usage: r.Usage, DataURLs: r.URLs}
}

// Settings returns what the turn was asked under.
func (r Recent) Settings() (Settings, error) {
	st, err := DecodeState("the last conversation of "+r.Dir, []byte(r.State))
	return st.Settings, err
}

// How many directories are remembered, and for how long.
const (
	maxRecents = 500
	recentAge  = 90 * 24 * time.Hour
)

// Recents remembers the last conversation of each directory, for each agent and for none: a
// file each, which is replaced as a whole. Its methods may be called from several goroutines
// and processes.
type Recents struct {
	Path string              // directory of the files; made when it is needed
	Now  func() time.Time    // nil means time.Now
	Hide func(string) string // what of a record is written; nil means all
}

// dir returns where the files of a directory are.
func (f Recents) dir(of string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(f.Path, hex.EncodeToString(sum[:12]))
}

func (f Recents) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// Note remembers r as the last conversation of its directory. The time is that of the call. It
// does not wait for the disk.
func (f Recents) Note(r Recent) error {
	r.At = f.now().UTC()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if f.Hide != nil {
		data = []byte(f.Hide(string(data)))
	}
	dir := f.dir(r.Dir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		f.prune()
	}
	sum := sha256.Sum256([]byte(r.Scope))
	return atomicfile.Write(filepath.Join(dir, hex.EncodeToString(sum[:8])+".json"), data, atomicfile.Options{Mode: atomicfile.Private, NoSync: true})
}

// Last returns the last conversation of a directory: with the agent of scope, which is "" for
// none, or with any if scope is nil. ok is false if none is remembered.
func (f Recents) Last(dir string, scope *Scope) (last Recent, ok bool, err error) {
	for _, file := range atomicfile.Glob(f.dir(dir), "*.json") {
		data, readErr := os.ReadFile(file)
		var r Recent
		if readErr == nil {
			readErr = json.Unmarshal(data, &r)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", file, readErr))
			continue
		}
		if r.Dir == dir && (scope == nil || r.Scope == *scope) && (!ok || r.At.After(last.At)) {
			last, ok = r, true
		}
	}
	if ok {
		err = nil // the others do not matter
	}
	return last, ok, err
}

// prune forgets directories in which nothing was said for long, and the oldest of too many. What
// cannot be removed stays.
func (f Recents) prune() {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return
	}
	type old struct {
		path string
		used time.Time
	}
	var list []old
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			list = append(list, old{filepath.Join(f.Path, e.Name()), info.ModTime()}) // which a replaced file changes
		}
	}
	slices.SortFunc(list, func(a, b old) int { return b.used.Compare(a.used) })
	for i, o := range list {
		if i >= maxRecents-1 || f.now().Sub(o.used) > recentAge {
			_ = os.RemoveAll(o.path)
		}
	}
}

// Unnamed reports whether the session is kept without an alias, see [Session.KeepUnnamed].
func (s *Session) Unnamed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unnamed()
}

// EncodeNew returns what is stored of a new session with one turn, which has no alias, see [Session.KeepUnnamed].
func EncodeNew(o Options, initial Settings, t Turn) (State, []byte, error) {
	now := o.Now().UTC().Truncate(time.Second)
	st := State{Settings: initial, Created: now, Unnamed: true, DataURLs: t.DataURLs}
	var h history
	g, ok := newTurn(&h, t, now).group(&h)
	if !ok {
		return st, nil, errors.New("there is nothing to record")
	}
	log, err := o.encode(g)
	return st, log, err
}

// KeepUnnamed has a temporary session saved without a name, whatever its settings say. A store
// may remove it when it has not been used for long, unless it got an alias.
func (s *Session) KeepUnnamed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Unnamed, s.stale = true, s.stored
}
