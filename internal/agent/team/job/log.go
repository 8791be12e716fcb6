package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"loki/internal/llm/event/redact"
)

// log is what a job has printed, without secrets. It may be used from several goroutines.
type log struct {
	secrets *redact.Secrets
	max     int64               // bytes of the file
	moved   func(base int64)    // is called before base changes, with -1, and after that; nil for nothing
	refresh func() (moved bool) // finds out base, end and whether it is done, of a log that another process writes; nil for others
	failing func()              // is called when the file cannot be written for the first time

	mu      sync.Mutex    // guards what follows
	file    *os.File      // nil when the log was released
	base    int64         // position of the first byte of the file
	end     int64         // position after the last one
	pending string        // printed, and perhaps the beginning of a secret
	done    bool          // nothing more comes
	failed  error         // why the file could not be written, as the system says; nil if it could
	changed chan struct{} // closed at the next change
}

func newLog(path string, max int64, secrets *redact.Secrets, failing func()) (*log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &log{secrets: secrets, max: max, failing: failing, file: f, changed: make(chan struct{})}, nil
}

// Write implements [io.Writer]. It never fails: what the disk does not take is missing.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var shown string
	shown, l.pending = l.secrets.Piece(l.pending + string(p))
	l.add(shown)
	l.notify()
	return len(p), nil
}

func (l *log) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// finish says that nothing more comes.
func (l *log) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(l.secrets.Text(l.pending))
	l.pending, l.done = "", true
	l.notify()
}

// release closes the file.
func (l *log) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.Close()
	l.file = nil
}

// add appends to the file, which keeps three quarters of what it may have when it is full.
func (l *log) add(text string) {
	if l.file == nil {
		return
	}
	_, err := l.file.WriteAt([]byte(text), l.end-l.base)
	l.note(err)
	if err != nil && int64(len(text)) < l.max {
		l.end += int64(len(text))
		l.restart(nil)
		return
	}
	l.end += int64(len(text))
	if l.end-l.base <= l.max {
		return
	}
	kept := make([]byte, l.max/4*3)
	n, _ := l.file.ReadAt(kept, l.end-l.base-int64(len(kept))) // what cannot be read is missing
	l.restart(kept[:n])
}

// restart makes kept, which ends at the end, the only content of the file.
func (l *log) restart(kept []byte) {
	if l.moved != nil {
		l.moved(-1)
		defer func() { l.moved(l.base) }()
	}
	_ = l.file.Truncate(0)
	n, err := l.file.WriteAt(kept, 0)
	if l.note(err); err != nil {
		n = 0
	}
	l.base = l.end - int64(n)
	if n == 0 {
		_ = l.file.Truncate(0)
	}
}

// note keeps the first error of the file.
func (l *log) note(err error) {
	if err == nil || l.failed != nil {
		return
	}
	l.failed = err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		l.failed = path.Err
	}
	l.failing()
}

// trouble returns why the file could not be written, nil if it could.
func (l *log) trouble() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Part is a part of the output.
type Part struct {
	From, To, Dropped int64 // Dropped is how many bytes were removed between what was asked for and From
	Text              string
}

// read returns at most limit bytes of the output from a position on.
func (l *log) read(since int64, limit int) Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readLocked(since, limit)
}

func (l *log) readLocked(since int64, limit int) Part {
	if l.refresh == nil {
		return l.part(since, limit)
	}
	for l.refresh(); ; {
		if p := l.part(since, limit); !l.refresh() { // else its beginning was removed meanwhile
			return p
		}
	}
}

func (l *log) part(since int64, limit int) Part {
	since = min(max(since, 0), l.end)
	p := Part{From: max(since, l.base)}
	p.Dropped = p.From - since
	data := make([]byte, min(l.end-p.From, int64(limit)))
	if l.file != nil {
		n, _ := l.file.ReadAt(data, p.From-l.base)
		data = data[:n]
	} else {
		data = nil
	}
	if p.To = p.From + int64(len(data)); p.To < l.end || !l.done {
		data = wholeRunes(data)
		p.To = p.From + int64(len(data))
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	p.Text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	return p
}

// last returns the last part of the output.
func (l *log) last(limit int) Part {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.readLocked(max(l.end-int64(limit), l.base, 0), limit)
	for cut := 0; cut < 3 && p.From > 0 && strings.HasPrefix(p.Text, "\uFFFD"); cut++ { // the rest of a character
		p.Text, p.From = strings.TrimPrefix(p.Text, "\uFFFD"), p.From+1
	}
	p.Dropped = p.From
	return p
}

// wholeRunes returns data without the beginning of a character at its end, unless that is all.
func wholeRunes(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i < len(data); i++ {
		if rest := data[len(data)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// wait waits until the output after a position matches a pattern, or is there if that is nil, or until nothing more comes or ctx has ended.
func (l *log) wait(ctx context.Context, since int64, pattern *regexp.Regexp) (found bool) {
	const overlap = 4 << 10 // what a match may be long
	from := since
	for {
		l.mu.Lock()
		p := l.readLocked(from, int(l.max))
		text, done, changed := p.Text+l.pending, l.done, l.changed
		found = pattern == nil && l.end > since || pattern != nil && pattern.MatchString(text)
		l.mu.Unlock()
		if found || done {
			return found
		}
		from = max(from, p.To-overlap)
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
