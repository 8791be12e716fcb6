// Package ledger keeps what model calls used: an entry for each call of any process, by day.
//
// The entries of a day are lines of JSON in a file of their own, called after the local date. A
// process appends a line in one call to the system, so that several processes share a file without
// locks. Entries hold no text of what was asked or answered.
package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/llm/chat"
)

// Entry is what one call used.
type Entry struct {
	At    time.Time `json:"at"`
	Model string    `json:"model"` // id
	chat.Usage
}

// Ledger is a directory of entries. Its methods may be called from several goroutines and
// processes.
type Ledger struct {
	Dir string           // made when it is needed
	Now func() time.Time // nil means time.Now; its time zone decides which day it is
}

// keepDays is how many days are kept before the present one.
const keepDays = 90

const (
	day       = "2006-01-02"
	extension = ".jsonl"
)

func (l Ledger) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

func (l Ledger) file(date string) string { return filepath.Join(l.Dir, date+extension) }

// Add adds an entry with the present time. Nothing used is nothing to add. It does not wait for the
// disk. The first entry of a day removes the days that are no longer kept.
func (l Ledger) Add(model string, used chat.Usage) error {
	if used == (chat.Usage{}) {
		return nil
	}
	now := l.now()
	line, err := json.Marshal(Entry{now.UTC().Truncate(time.Second), model, used})
	if err != nil {
		return err
	}
	file := l.file(now.Format(day))
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		l.prune(now)
	}
	return atomicfile.Append(file, append(line, '\n'))
}

// prune removes old days. What cannot be removed stays.
func (l Ledger) prune(now time.Time) {
	first := now.AddDate(0, 0, -keepDays).Format(day)
	dates, _ := l.dates() // there may be none yet
	for _, date := range dates {
		if date < first {
			_ = os.Remove(l.file(date))
		}
	}
}

// dates returns the days there are.
func (l Ledger) dates() ([]string, error) {
	files, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []string
	for _, f := range files {
		date, ok := strings.CutSuffix(f.Name(), extension)
		if _, err := time.Parse(day, date); ok && err == nil {
			list = append(list, date)
		}
	}
	return list, err
}

// ModelUsage is what calls of one model used.
type ModelUsage struct {
	Model string
	Calls int
	chat.Usage
}

// Sum is what was used over some days.
type Sum struct {
	Calls int
	chat.Usage
	Models []ModelUsage // by cost, then by tokens, highest first
}

// Sum returns what was used on the present day and the days before it, days in all. What cannot be
// read, such as a line whose write was cut short, is left out.
func (l Ledger) Sum(days int) (Sum, error) {
	var s Sum
	models := make(map[string]*ModelUsage)
	now := l.now()
	for i := range days {
		data, err := os.ReadFile(l.file(now.AddDate(0, 0, -i).Format(day)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, err
		}
		for line := range bytes.Lines(data) {
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil || e.Model == "" {
				continue
			}
			m := models[e.Model]
			if m == nil {
				m = &ModelUsage{Model: e.Model}
				models[e.Model] = m
			}
			m.Calls++
			m.Usage = m.Add(e.Usage)
			s.Calls++
			s.Usage = s.Add(e.Usage)
		}
	}
	for _, m := range models {
		s.Models = append(s.Models, *m)
	}
	slices.SortFunc(s.Models, func(a, b ModelUsage) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Model, b.Model))
	})
	return s, nil
}
