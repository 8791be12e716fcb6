//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// statAt examines a file in an open directory, or the directory itself if name is empty. Links are not followed.
func statAt(dir int, name string) (stat, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var x unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &x); err != nil {
		return stat{}, err
	}
	s := stat{mode: uint32(x.Mode), links: uint64(x.Nlink), user: int(x.Uid), changed: nanoseconds(x.Ctime)}
	s.id = fileID{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino}
	if x.Mask&unix.STATX_BTIME != 0 {
		s.id.Born = nanoseconds(x.Btime)
	}
	return s, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }

// now returns the time that a file which is changed at this moment gets. It is that of a new file in memory, since Linux 6.13 gives a file
// that is changed after it was looked at a finer time than the coarse clock has, and no later change of any file an earlier one.
func now() int64 {
	if fd, err := unix.MemfdCreate("loki", unix.MFD_CLOEXEC); err == nil {
		defer unix.Close(fd)
		if s, err := statAt(fd, ""); err == nil {
			return s.changed
		}
	}
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &t) // it exists on every Linux
	return t.Nano()
}

// entriesOf lists an open directory.
func entriesOf(dir int) ([]entry, error) {
	if _, err := unix.Seek(dir, 0, 0); err != nil {
		return nil, err
	}
	var all []entry
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(dir, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return all, err
		}
		text := string(buf[:n]) // the names share it
		for at := 0; at < n; {
			size := int(binary.NativeEndian.Uint16(buf[at+16:]))
			kind := buf[at+18]
			length := bytes.IndexByte(buf[at+19:at+size], 0)
			name := text[at+19 : at+19+length]
			at += size
			if name == "." || name == ".." {
				continue
			}
			if kind == unix.DT_UNKNOWN { // some file systems leave it out
				if s, err := statAt(dir, name); err == nil {
					kind = byte(s.mode & unix.S_IFMT >> 12)
				}
			}
			all = append(all, entry{strings.Clone(name), kinds[kind]})
		}
	}
}

// kinds are the types of files as directories list them.
var kinds = map[byte]fs.FileMode{unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink, unix.DT_SOCK: fs.ModeSocket, unix.DT_FIFO: fs.ModeNamedPipe}

// renameIn renames a file within an open directory. It replaces none.
func renameIn(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}

// permit changes the mode of a file that is open, also by O_PATH.
func permit(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode&0o7777)
}

// pathOnly opens a directory that need not be readable.
const pathOnly = unix.O_PATH
