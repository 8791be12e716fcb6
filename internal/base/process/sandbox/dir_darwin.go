package sandbox

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// statAt examines a file in an open directory, or the directory itself if name is empty. Links are not followed.
func statAt(dir int, name string) (stat, error) {
	var x unix.Stat_t
	var err error
	if name == "" {
		err = unix.Fstat(dir, &x)
	} else {
		err = unix.Fstatat(dir, name, &x, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return stat{}, err
	}
	return stat{
		id: fileID{Dev: uint64(x.Dev), Ino: x.Ino, Born: x.Btim.Nano()}, mode: uint32(x.Mode), links: uint64(x.Nlink), user: int(x.Uid), changed: x.Ctim.Nano(),
	}, nil
}

func now() int64 { return time.Now().UnixNano() }

// entriesOf lists an open directory.
func entriesOf(dir int) ([]entry, error) {
	own, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own), "")
	defer f.Close()
	found, err := f.ReadDir(-1)
	all := make([]entry, len(found))
	for i, e := range found {
		all[i] = entry{e.Name(), e.Type()}
	}
	return all, err
}

// renameIn renames a file within an open directory. It replaces none.
func renameIn(dir int, from, to string) error {
	return unix.RenameatxNp(dir, from, dir, to, unix.RENAME_EXCL)
}

// permit changes the mode of a file that is open.
func permit(fd int, mode uint32) error { return unix.Fchmod(fd, mode&0o7777) }

// pathOnly opens a directory that need not be readable.
const pathOnly = unix.O_EVTONLY
