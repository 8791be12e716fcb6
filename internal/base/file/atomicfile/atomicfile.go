// Package atomicfile writes files that are whole at every moment.
//
// A file is replaced in one step: its new content goes to a temporary file in the same
// directory, whose name begins with a dot and the name of the file, and that file is then
// renamed. A reader sees the old content or the new, never a part, and the same holds
// after a failure: a full disk, a directory that cannot be written, or a process that
// was killed at any point leaves the old content, and no file where there was none.
//
// After a synced write, the default, the same holds for a crash of the system, and the
// new content is on the disk when the call returns. An unsynced write is for content that
// can be recreated: after a crash of the system the file may hold the old content, the
// new, or be empty.
//
// A symbolic link stays one: the file it leads to is replaced, or made where it leads.
// Modes are exact: the umask does not matter. The owner and the group of a file that is replaced are kept, as far as the process may: root may
// both, others a group of theirs.
//
// Locks hold off other processes, and other open files of this one, that ask for them. They
// are those of the operating system: a lock ends with the process at the latest. On a file
// system without locks there is none, and no caller waits.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Private is the mode of a file that only its owner can read.
const Private fs.FileMode = 0o600

// leftoverAge is how long a temporary file is left alone: its writer may be at work.
const leftoverAge = time.Hour

// Options say how [Write] writes.
type Options struct {
	Mode   fs.FileMode // permissions; 0 keeps those of the file that is replaced, [Private] for a new one
	NoSync bool        // do not wait for the disk
}

// Write makes data the content of the file at path, whose directory is made, for its owner
// only, if it does not exist. Unless o.NoSync is set, temporary files of path that a killed
// process left an hour ago or earlier are removed. The error is a [*fs.PathError].
//
// Write may be called by several goroutines and processes at once: the content is that of
// one of them.
func Write(path string, data []byte, o Options) error {
	path, mode := resolve(path, o.Mode)
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"-"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !o.NoSync {
		sweep(dir, func(name string) bool { return name == filepath.Base(path) })
	}
	temp, err := os.CreateTemp(dir, prefix+"*") // its mode is Private
	if err == nil {
		keepOwner(temp, path)
		if err = errors.Join(fill(temp, data, mode, !o.NoSync), temp.Close()); err == nil {
			err = Rename(temp.Name(), path)
		}
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: cause(err)}
	}
	if !o.NoSync {
		SyncDir(dir)
	}
	return nil
}

// resolve follows path if it is a symbolic link. mode is the one that the file gets.
func resolve(path string, mode fs.FileMode) (string, fs.FileMode) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSymlink {
		path = follow(path)
	}
	if mode == 0 {
		mode = Private
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	return path, mode
}

// follow returns what a symbolic link leads to, if it leads to a file that does not exist,
// too.
func follow(link string) string {
	if target, err := filepath.EvalSymlinks(link); err == nil {
		return target
	}
	target, err := os.Readlink(link)
	if err != nil {
		return link
	}
	if filepath.IsAbs(target) {
		return target
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(link))
	if err != nil {
		return link
	}
	return filepath.Join(dir, target)
}

func fill(f *os.File, data []byte, mode fs.FileMode, sync bool) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if mode != Private {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if sync {
		return f.Sync()
	}
	return nil
}

// cause returns err without the name of the temporary file.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// Sweep removes the temporary files in dir that killed writers of files whose names end with end left an hour ago or earlier.
func Sweep(dir, end string) {
	sweep(dir, func(name string) bool { return strings.HasSuffix(name, end) })
}

// sweep removes the temporary files in dir for files whose names match, and whose writers have died.
func sweep(dir string, matches func(name string) bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		i := strings.LastIndexByte(e.Name(), '-')
		if i < 1 || e.Name()[0] != '.' || !matches(e.Name()[1:i]) {
			continue
		}
		if number := e.Name()[i+1:]; number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Rename is [os.Rename]. Windows does not replace a file while another process reads it:
// there it tries for up to a second.
func Rename(from, to string) error {
	err := os.Rename(from, to)
	for wait := time.Millisecond; err != nil && runtime.GOOS == "windows" && wait < time.Second; wait *= 2 {
		time.Sleep(wait)
		err = os.Rename(from, to)
	}
	return err
}

// SyncDir waits until the names in dir are on the disk, on systems that can do so.
func SyncDir(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// Probe reports why a file in dir could not be written now, nil if it could: it writes a small one and removes it. The
// directory is made, for its owner only, if it does not exist.
func Probe(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096)) // more than fits beside the name of a file
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// OpenAppend opens the file at path for appending. The file, readable by its owner only,
// and its directory are made if they do not exist.
func OpenAppend(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, Private)
}

// Append adds data to the file at path, which [OpenAppend] opens, in one call to the system. If only
// a part can be written it is cut off again. Append does not wait for the disk.
func Append(path string, data []byte) error {
	f, err := OpenAppend(path)
	if err != nil {
		return err
	}
	n, err := f.Write(data)
	if err != nil && n > 0 {
		if end, seekErr := f.Seek(0, io.SeekEnd); seekErr == nil {
			err = errors.Join(err, f.Truncate(end-int64(n)))
		}
	}
	return errors.Join(err, f.Close())
}
