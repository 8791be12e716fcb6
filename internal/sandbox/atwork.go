package sandbox

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"loki/internal/atomicfile"
)

// atWork is what a box whose child writes has on record while it is at work, for boxes of all processes. Its file is locked
// until then.
type atWork struct {
	Level     Level    `json:"level"`
	Workspace string   `json:"workspace"`
	Before    []string `json:"before"` // places that run later and that no command made that was at work when it began
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

// begin returns the limits, and the places that run later as they were before all commands that are at work: what one of these
// made has no past, so that the last of them to end finds it, whichever made it.
func (b *Box) begin() (limits, past, error) {
	others := b.others()
	l, found, err := b.limits()
	if err != nil {
		return l, past{}, err
	}
	before := found.past()
	if l.level.Covers(Write) {
		for _, w := range append(others, b.others()...) { // some began during the survey
			if !l.level.Covers(w.Level) {
				continue // it may make more
			}
			before.without(func(path string) bool { return contains(w.Workspace, path) && !slices.Contains(w.Before, path) })
		}
		b.register(atWork{l.level, l.workspace, before.paths()})
	}
	return l, before, nil
}

// finish withholds what the child made that runs later, and notes what another program replaced.
func (b *Box) finish(before past) {
	b.withheld = before.replaced(b.s.display)
	if b.held.level.Covers(Write) {
		b.withheld = append(b.withheld, b.withhold(before)...)
	}
	b.leave()
}
