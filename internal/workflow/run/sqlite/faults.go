package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/workflow/run"
	"loki/internal/workflow/run/record"
)

// explain turns an error about the file into one for its user. Other errors are
// returned as they are.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, run.ErrLeaseLost) {
		return err
	}
	if isFull(path, err) {
		return full(path, err)
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fault.Wrap(fault.Failure, run.As(run.ErrPassing, err), "opening %s failed", path)
	}
	if e, ok := errors.AsType[*versionError](err); ok {
		f := fault.New(fault.Config, "cannot use %s: %v", path, e)
		if e.version > 0 {
			return f.WithHint("update loki, or move the file aside: %s", moveAside(path))
		}
		return f.WithHint("move it aside: %s", moveAside(path))
	}
	if errors.Is(err, record.ErrDamaged) {
		return damageError(path, err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.Config, err, "cannot keep the record of runs in %s", path).WithHint("make %s writable for you", path)
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fault.Wrap(fault.Config, err, "cannot keep the record of runs in %s", path)
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH:
		return damageError(path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN:
		return fault.Wrap(fault.Config, err, "cannot open or write %s", path).
			WithHint("make the file, the directory it is in and the files %s-wal and %s-shm beside it writable for you", path, path)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(fault.Failure, run.As(run.ErrPassing, err), "%s is locked by another process", path).
			WithHint("look for a process that holds it: fuser -v %s", text.Word(path))
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return fault.Wrap(fault.Failure, run.As(run.ErrPassing, err), "reading or writing %s failed", path).
			WithHint("check the disk and the space left on it; the runs recorded so far are kept")
	}
	return fault.Wrap(fault.Failure, err, "the record of runs in %s", path)
}

func damageError(path string, err error) error {
	return fault.Wrap(fault.Failure, err, "%s is damaged", path).
		WithHint("move it aside, and a new one is begun: %s", moveAside(path))
}

// damagedRun returns the error of a run whose record cannot be read, in a file whose
// other runs can.
func damagedRun(path, name string, err error) error {
	return fault.Wrap(fault.Failure, err, "the record of run %s in %s is damaged", name, path).
		WithHint("other runs are not affected: loki --runs; to begin a new file, move this one aside: %s", moveAside(path))
}

// isFull reports whether an error is that of a full disk, or of a used-up quota. SQLite has a code of its own only for some of
// them; others look like any failure to read, write, enlarge or create a file.
func isFull(path string, err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return true
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
			if dir := filepath.Dir(path); isDir(dir) {
				err = atomicfile.Probe(dir)
			}
		}
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func full(path string, err error) error {
	return fault.Wrap(fault.Failure, err, "no space is left to write %s", path).
		WithHint("free some space; the runs recorded so far are kept")
}

// moveAside returns the command that moves the file out of the way, with the log that
// belongs to it if there is one.
func moveAside(path string) string {
	command := fmt.Sprintf("mv %s %s", text.Word(path), text.Word(path+".broken"))
	if _, err := os.Stat(path + "-wal"); err == nil {
		command += fmt.Sprintf("; mv %s %s", text.Word(path+"-wal"), text.Word(path+".broken-wal"))
	}
	return command
}
