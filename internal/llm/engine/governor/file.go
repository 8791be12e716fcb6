package governor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"loki/internal/base/file/atomicfile"
)

// process is this process among the ones that share limits. While it lives it holds the lock of a file.
type process struct {
	dir  string
	once sync.Once
	id   string   // empty if the directory cannot be used
	file *os.File // ID.lock
}

// join makes the file, once, and returns the id of the process.
func (p *process) join() string {
	p.once.Do(func() {
		if p.dir == "" || os.MkdirAll(p.dir, 0o700) != nil {
			return
		}
		f, err := os.CreateTemp(p.dir, strconv.Itoa(os.Getpid())+"-*.lock")
		if err != nil {
			return
		}
		if locked, err := atomicfile.TryLock(f); err != nil || !locked {
			_ = f.Close()
			return
		}
		p.sweep()
		p.file, p.id = f, strings.TrimSuffix(filepath.Base(f.Name()), ".lock")
	})
	return p.id
}

// sweep removes the files of processes that were killed.
func (p *process) sweep() {
	files, _ := filepath.Glob(filepath.Join(p.dir, "*.lock"))
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute { // others may not be locked yet
			_, _ = atomicfile.HeldElseRemoved(path)
		}
	}
}

// leave removes the file.
func (p *process) leave() {
	p.once.Do(func() {})
	if p.file != nil {
		_ = os.Remove(p.file.Name())
		_ = p.file.Close()
		p.file = nil
	}
}

// isGone reports whether a share is that of another process, which does not hold the lock of its file.
func (p *process) isGone(share string) bool {
	id, _, _ := strings.Cut(share, "#")
	if id == p.id {
		return false
	}
	held, err := atomicfile.HeldElseRemoved(filepath.Join(p.dir, filepath.Base(id)+".lock"))
	return !held && err == nil
}

// shared keeps a state in a file of all processes. What cannot be read is forgotten; if the file cannot be used the state
// is that of this process alone.
type shared struct {
	path    string
	process *process
	looked  time.Time // for processes that ended
	own     memory    // what was read or written last
}

const (
	filePoll = 50 * time.Millisecond  // from one look at the file to the next, while calls wait
	rowPoll  = 500 * time.Millisecond // the same of a database, which sends news
	lockTime = time.Second            // for which the file is waited for
	lookTime = 500 * time.Millisecond // from one look for processes that ended to the next
)

func (f *shared) update(change func(*state)) {
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	file, data, err := readLocked(ctx, f.path)
	if err != nil {
		f.own.update(change)
		return
	}
	defer file.Close() // what counts is the lock
	before := len(data)
	now := time.Now()
	f.own.s = readState(data, now)
	if now.Sub(f.looked) > lookTime {
		f.looked = now
		for id := range f.own.s.Shares {
			if f.process.isGone(id) {
				delete(f.own.s.Shares, id)
			}
		}
	}
	f.own.update(change)
	_ = f.own.s.write(file, before) // what was written in part is forgotten by the next who reads it
}

// write writes s to its file, which had so many bytes.
func (s *state) write(file *os.File, before int) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(data, 0); err == nil && len(data) < before {
		err = file.Truncate(int64(len(data))) // not to 0 before, after which some file systems write at once
	}
	return err
}

// readLocked opens and locks a file, and returns what it has.
func readLocked(ctx context.Context, path string) (*os.File, []byte, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // it would be waited for, or be a file of others
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	data, err := []byte(nil), atomicfile.LockFile(ctx, file)
	if err == nil {
		data, err = io.ReadAll(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, data, nil
}

// maxAtOnce bounds what is learned.
const maxAtOnce = 1 << 20

// readState reads a state from a file. Whatever the file has, the state does not stop calls for long.
func readState(data []byte, now time.Time) state {
	var s state
	if json.Unmarshal(data, &s) != nil {
		s = state{}
	}
	s.AtOnce = min(max(0, s.AtOnce), maxAtOnce)
	s.Step, s.InARow = min(max(0, s.Step), maxAtOnce), max(0, s.InARow)
	s.Probe = min(max(0, s.Probe), lastProbe)
	for id, p := range s.Shares {
		if p == nil || p.Held < 0 || p.Waiting < 0 || p.Held > maxAtOnce {
			delete(s.Shares, id)
		}
	}
	for kind, b := range s.Buckets {
		if b == nil || b.At.After(now.Add(time.Second)) {
			delete(s.Buckets, kind)
		}
	}
	if ahead := s.LastRefusal.Sub(now); ahead > time.Second && s.Paused.After(now) { // the clock was set back
		s.Paused = s.Paused.Add(-ahead)
	}
	for _, at := range []*time.Time{&s.Begun, &s.LastRefusal, &s.Streak} {
		if at.After(now.Add(time.Second)) { // the clock was set back
			*at = now
		}
	}
	if s.ProbeAt.Sub(now) > lastProbe {
		s.ProbeAt = now.Add(lastProbe)
	}
	s.Outages = s.Outages[max(0, len(s.Outages)-outages):]
	s.OpenTime = min(max(0, s.OpenTime), longOutage)
	if s.Open.Sub(now) > s.OpenTime {
		s.Open = now.Add(s.OpenTime)
	}
	if s.Paused.Sub(now) > longestWait {
		s.Paused = now.Add(longestWait)
	}
	if s.Paused.Sub(now) > longGuess && (s.AskAt.IsZero() || s.AskAt.Sub(now) > longGuess) {
		s.AskAt = now.Add(longGuess)
	}
	return s
}

// storeOf returns the store of a limit, the id of the process in it, and how often calls ask it for those of other processes.
func (g *Governor) storeOf(l *limiter, o Options) (store, string, time.Duration) {
	if o.Limits.Share && o.Account != nil && g.database.has() {
		r := &row{rows: g.database.rows, account: o.Account(), share: "#" + o.Client}
		g.database.hear(r.account, l.look)
		return r, r.share, rowPoll
	}
	id := ""
	if o.Limits.Share && o.Account != nil {
		id = g.process.join()
	}
	if id == "" {
		return &memory{}, "own", filePoll
	}
	return &shared{path: filepath.Join(g.process.dir, o.Account()+".json"), process: &g.process}, id + "#" + o.Client, filePoll
}
