package trust

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
)

// Store is the file with what is trusted. It may be used by several goroutines and processes.
type Store struct {
	File string // its path
}

// Record is a directory that is trusted.
type Record struct {
	Dir   string    `json:"dir"`             // as [Content] has it
	Kind  string    `json:"kind,omitempty"`  // "", [WorkspaceKind] or [SkillKind]
	Sum   string    `json:"sum"`             // likewise
	Time  time.Time `json:"time"`            // when it was trusted
	Files []File    `json:"files"`           // ascending by name
	Tests []File    `json:"tests,omitempty"` // see [Content]
}

// Trusts reports whether the content, test cases aside, is as it was.
func (r Record) Trusts(c Content) bool { return len(r.Changes(c)) == 0 }

// TrustsTests reports whether the test cases are as they were, too.
func (r Record) TrustsTests(c Content) bool {
	return r.Trusts(c) && !slices.ContainsFunc(c.Tests, func(f File) bool { return !slices.Contains(r.Tests, f) && !slices.Contains(r.Files, f) })
}

// Changes returns the names of the files that are not as they were, with what became of each: "new NAME",
// "changed NAME" or "removed NAME".
func (r Record) Changes(c Content) []string {
	before := make(map[string]File, len(r.Files))
	for _, f := range r.Files {
		before[f.Name] = f
	}
	var changes []string
	for _, f := range c.Files {
		old, known := before[f.Name]
		delete(before, f.Name)
		switch {
		case !known:
			changes = append(changes, "new "+f.Name)
		case old != f:
			changes = append(changes, "changed "+f.Name)
		}
	}
	for _, f := range r.Files {
		if _, gone := before[f.Name]; gone && !isTest(f.Name) && !isData(f.Name) { // which older records have
			changes = append(changes, "removed "+f.Name)
		}
	}
	return changes
}

// list is what the file holds.
type list struct {
	Directories []Record `json:"directories"`
}

// List returns what is trusted, ascending by directory. A file that is not there holds nothing.
func (s Store) List() ([]Record, error) {
	data, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l list
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	slices.SortFunc(l.Directories, byDir)
	return l.Directories, nil
}

// Lookup returns the record of a directory as [Resolve] returns it, of a kind; ok is false if there is none.
// Whether it holds for what the directory has now is for the caller to compare.
func (s Store) Lookup(dir, kind string) (r Record, ok bool, err error) {
	records, err := s.List()
	i, ok := find(records, dir, kind)
	if !ok {
		return Record{}, false, err
	}
	return records[i], true, nil
}

// find returns where the record of a directory is, or would be.
func find(records []Record, dir, kind string) (int, bool) {
	return slices.BinarySearchFunc(records, Record{Dir: dir, Kind: kind}, byDir)
}

func byDir(a, b Record) int {
	return cmp.Or(strings.Compare(a.Dir, b.Dir), strings.Compare(a.Kind, b.Kind))
}

// Trust records that the user trusts a directory with this content, and no other one any more.
func (s Store) Trust(ctx context.Context, c Content, now time.Time) error {
	return s.edit(ctx, c.Dir, "", now, func(r *Record) { r.Sum, r.Files, r.Tests = c.Sum, c.Files, c.Tests })
}

// edit changes the record of a directory, which it makes if there is none.
func (s Store) edit(ctx context.Context, dir, kind string, now time.Time, f func(r *Record)) error {
	return s.change(ctx, func(records []Record) []Record {
		i, known := find(records, dir, kind)
		if !known {
			records = slices.Insert(records, i, Record{Dir: dir, Kind: kind})
		}
		records[i].Time = now.UTC().Truncate(time.Second)
		f(&records[i])
		return records
	})
}

// Forget takes a directory out of the record, as all that it is there for, and reports whether it was there.
func (s Store) Forget(ctx context.Context, dir string) (known bool, err error) {
	err = s.change(ctx, func(records []Record) []Record {
		of := func(r Record) bool { return r.Dir == dir }
		known = slices.ContainsFunc(records, of)
		return slices.DeleteFunc(records, of)
	})
	return known, err
}

// change replaces the records while no other process does.
func (s Store) change(ctx context.Context, f func([]Record) []Record) error {
	unlock, err := atomicfile.Lock(ctx, s.File+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	records, err := s.List()
	if err != nil {
		return err
	}
	data, err := json.Marshal(list{f(records)})
	if err != nil {
		return err
	}
	return atomicfile.Write(s.File, append(data, '\n'), atomicfile.Options{Mode: atomicfile.Private})
}
