//go:build (linux && (amd64 || arm64)) || darwin

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"loki/internal/base/file/atomicfile"
)

// atWork is what a box whose child writes has on record while it is at work, for boxes of all processes. Its file is locked
// until then.
type atWork struct {
	Level     Level  `json:"level"`
	Workspace string `json:"workspace"`
	Lasting   bool   `json:"lasting,omitempty"` // it does not end by itself, so that no other waits for it
}

// shared is what the boxes of a workspace that are at work have in common. Its zero value is that of a box alone.
type shared struct {
	Level  Level    `json:"level"`            // the highest one of them
	Served bool     `json:"served,omitempty"` // they have ended, and programs that run until they are stopped are at work
	Began  int64    `json:"began"`            // see survey
	Before []before `json:"before"`
	Shut   []fileID `json:"shut"`

	known baseline
}

// before is what was in a directory before them.
type before struct {
	Dir   fileID   `json:"dir"`
	Names []string `json:"names"`
	Files []fileID `json:"files"` // these two at the first of them
}

// recordExt is the extension of the files of records.
const recordExt = ".record"

// workDir returns the directory of the records, empty without a state directory.
func (b *Box) workDir() string {
	if b.s.o.State == "" {
		return ""
	}
	return filepath.Join(resolve(b.s.o.State), "sandbox", "work")
}

// lock has no other box begin or end until it is unlocked. What cannot be locked, as on a full disk, is not.
func (b *Box) lock() (unlock func()) {
	if b.workDir() == "" {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // several walks through a very large workspace, on a busy machine
	defer cancel()
	unlock, err := atomicfile.Lock(ctx, filepath.Join(b.workDir(), "lock"))
	if err != nil {
		return func() {}
	}
	return unlock
}

// others returns the records of the boxes that are at work now. It removes those of processes that have ended.
func (b *Box) others() []atWork {
	dir := b.workDir()
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir) // without it there are none
	var all []atWork
	for _, e := range entries {
		if filepath.Ext(e.Name()) != recordExt {
			continue
		}
		file := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			continue // it has ended
		}
		var w atWork
		if free, err := atomicfile.TryLock(f); free && err == nil {
			os.Remove(file)
		} else if text, err := io.ReadAll(f); err == nil && json.Unmarshal(text, &w) == nil {
			all = append(all, w)
		}
		f.Close()
	}
	return all
}

// register puts the box on record until work is closed. What cannot be recorded, as on a full disk, is not.
func (b *Box) register(w atWork) {
	dir := b.workDir()
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, "*.new")
	if err != nil {
		return
	}
	text, err := json.Marshal(w)
	if err == nil {
		_, err = f.Write(text)
	}
	if locked, lockErr := atomicfile.TryLock(f); err != nil || lockErr != nil || !locked || os.Rename(f.Name(), f.Name()+recordExt) != nil {
		f.Close()
		os.Remove(f.Name())
		return
	}
	b.work, b.workFile = f, f.Name()+recordExt
}

// leave takes the box off the record.
func (b *Box) leave() {
	if b.work != nil {
		os.Remove(b.workFile)
		b.work.Close()
	}
}

// sharedFile returns the file of what the boxes of a workspace have in common.
func (b *Box) sharedFile(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(b.workDir(), hex.EncodeToString(sum[:8])+".shared")
}

// load returns what the boxes of a workspace that are at work have in common.
func (b *Box) load(workspace string) (s shared, ok bool) {
	text, err := os.ReadFile(b.sharedFile(workspace))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return shared{}, false
	}
	s.known = newBaseline()
	for _, d := range s.Before {
		for _, name := range d.Names {
			s.known.add(d.Dir, name)
		}
		for _, id := range d.Files {
			s.known.files[id] = true
		}
	}
	for _, id := range s.Shut {
		s.known.shut[id] = true
	}
	return s, true
}

// save is the opposite of load. What cannot be saved is not: then each box looks for itself.
func (b *Box) save(workspace string, s shared) {
	if b.workDir() == "" {
		return
	}
	s.Before, s.Shut = nil, nil
	for dir, names := range s.known.at {
		d := before{Dir: dir}
		for name := range names {
			d.Names = append(d.Names, name)
		}
		s.Before = append(s.Before, d)
	}
	if len(s.Before) == 0 {
		s.Before = []before{{}}
	}
	for id := range s.known.files {
		s.Before[0].Files = append(s.Before[0].Files, id)
	}
	for id := range s.known.shut {
		s.Shut = append(s.Shut, id)
	}
	if text, err := json.Marshal(s); err == nil {
		_ = atomicfile.Write(b.sharedFile(workspace), text, atomicfile.Options{NoSync: true})
	}
}

func overlap(a, b string) bool { return contains(a, b) || contains(b, a) }

// begin returns the limits. It records the box, and what runs later in the workspace as it was before all boxes that are at
// work: the last one of these to end looks for what any of them made.
func (b *Box) begin() (limits, error) {
	writes := b.writes()
	if writes {
		defer b.lock()()
		b.makeOwn()
	}
	l, found, err := b.limits()
	if err != nil {
		return l, err
	}
	b.held, b.found, b.before = l, &found, shared{Level: l.level, Began: found.began, known: found.places}
	if !writes {
		return l, nil
	}
	if b.needs.Lasting { // what it makes is looked for after each of its calls, see Watch
		b.register(atWork{l.level, l.workspace, true})
		return l, nil
	}
	b.had = b.trackedPaths(paths(found.moved))
	was, ok := b.load(l.workspace) // of boxes that are at work, or were until this program was killed
	mates := false
	for _, w := range b.others() {
		if w.Level == Full && overlap(w.Workspace, l.workspace) {
			b.before.Level = Full
		}
		if w.Level == Full || w.Workspace != l.workspace || w.Lasting {
			continue
		}
		if ok {
			b.before.known, b.before.Began = was.known, was.Began
			if was.Level.Covers(b.before.Level) {
				b.before.Level = was.Level
			}
		}
		mates = true
	}
	if !mates && was.Began != 0 {
		b.noticeLeft(was)
	}
	b.save(l.workspace, b.before)
	b.register(atWork{l.level, l.workspace, false})
	return l, nil
}

// beginFull records a box at level Full: what boxes below make while it is at work stays, as it may have made it.
func (b *Box) beginFull() {
	if b.workDir() == "" || !b.s.Support().Files {
		return
	}
	defer b.lock()()
	workspace := b.s.workspace()
	for _, w := range b.others() {
		if was, ok := b.load(w.Workspace); ok && overlap(w.Workspace, workspace) {
			was.Level = Full
			b.save(w.Workspace, was)
		}
	}
	b.register(atWork{Full, workspace, false})
}

// finish notes what another program replaced, and has what children made that runs later withheld, unless a box that is still at
// work will do so.
func (b *Box) finish() {
	b.notices = append(b.notices, b.found.replacedPlaces(b.s.display)...)
	if !b.writes() {
		return
	}
	b.noticeRecorded(b.found.moved, b.had)
	defer b.lock()()
	b.leave()
	served := false
	for _, w := range b.others() {
		if w.Level == Full || w.Workspace != b.held.workspace {
			continue
		}
		if !w.Lasting {
			return
		}
		served = true
	}
	file := b.sharedFile(b.held.workspace)
	if b.needs.Lasting {
		if was, ok := b.load(b.held.workspace); !served && ok && was.Served {
			b.noticeLeft(was)
		}
		if !served {
			os.Remove(file)
		}
		return
	}
	before := b.before
	if was, ok := b.load(b.held.workspace); ok {
		before = was
	}
	var left baseline
	b.withheld, left = b.withhold(before)
	if served {
		b.save(b.held.workspace, shared{Level: Write, Served: true, Began: now(), known: left})
	} else if b.workDir() != "" {
		os.Remove(file)
	}
}

// Watch does without a child what a box at a level that writes does around one: until end is called, what comes to be in the workspace
// and runs later is withheld. End returns notices of it. It is for a call of a program that runs until it is stopped.
func (s *Sandbox) Watch(d Declaration) (end func() []Refusal, err error) {
	b := s.Box(d, Needs{})
	if b.Level() == Full { // also where the kernel holds nothing
		return func() []Refusal { return nil }, nil
	}
	if _, err := b.begin(); err != nil {
		return nil, err
	}
	return func() []Refusal {
		b.finish()
		all := b.Refusals("", false)
		for i, r := range all {
			if r.Access == Writing { // no other level of the call would have had it
				all[i] = Refusal{Access: Noticed, What: "wrote " + r.What, Reason: r.Reason}
			}
		}
		return all
	}, nil
}
