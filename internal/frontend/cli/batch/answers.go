package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/value"
)

// Answers is an open file of answers. No other process writes to it until Close. Its methods
// may be called from several goroutines.
type Answers struct {
	mu   sync.Mutex
	file *os.File
	out  io.Writer // gets the answers if there is no file
	has  map[string]bool
	torn error // why a line may be unfinished; nothing goes behind it
}

// lockTimeout bounds how long Open waits for another batch, which may take hours.
const lockTimeout = time.Second

// Stream returns answers that are only written, to out. Close does not close it.
func Stream(out io.Writer) *Answers {
	return &Answers{out: out, has: make(map[string]bool)}
}

// Open opens the answers at path, which is made if it does not exist. An unfinished line
// at the end, of a batch that was killed, is cut off. A file that does not
// hold answers is an error with code Usage, and left as it is. A file that is not regular,
// such as a pipe or a terminal, is only written.
func Open(ctx context.Context, path string) (*Answers, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fault.Wrap(fault.Failure, err, "")
		}
		return &Answers{file: file, has: make(map[string]bool)}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Failure, err, "")
	}
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if err := atomicfile.LockFile(lockCtx, file); err != nil {
		_ = file.Close()
		if ctx.Err() == nil {
			err = errors.New("another batch is writing to it")
		}
		return nil, fault.Wrap(fault.Failure, err, "%s", path)
	}
	a := &Answers{file: file, has: make(map[string]bool)}
	if err := a.read(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return a, nil
}

func (a *Answers) read(path string) error {
	r := bufio.NewReader(a.file)
	end := int64(0) // of the last whole line
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) == 0 {
				return nil
			}
			return a.file.Truncate(end)
		}
		if err != nil {
			return err
		}
		var rec Record
		if len(bytes.TrimSpace(line)) > 0 {
			if err := json.Unmarshal(line, &rec); err != nil || rec.Key == "" {
				return fault.New(fault.Usage, "line %d of %s is not an answer: the file is not one that --map wrote", n, path)
			}
		}
		if rec.Error == "" {
			a.has[rec.Key] = true
		}
		end += int64(len(line))
	}
}

// Has reports whether the row with this key is answered.
func (a *Answers) Has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.has[key]
}

// Append adds a record. After one that could not be written whole all fail, so that what
// may be an unfinished line stays the last.
func (a *Answers) Append(rec Record) error {
	line, err := value.Marshal(rec)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.torn != nil {
		return a.torn
	}
	out := a.out
	if a.file != nil {
		out = a.file
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		a.torn = err
		return err
	}
	a.has[rec.Key] = a.has[rec.Key] || rec.Error == ""
	return nil
}

// Close lets others write.
func (a *Answers) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
