//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of files by Landlock. Those of files hold for what is not a directory, too.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// writeRights are all of version 3 but devices: no level makes these.
	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	heldRights = writeRights | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// leastLandlock is the oldest version that serves: before, every file could be made empty. It came with Linux 6.2.
const leastLandlock = 3

// landlockVersion returns the version of Landlock here, or why there is none.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EOPNOTSUPP):
		return 0, errors.New("the kernel has no Landlock, or it is switched off")
	case errno != 0:
		return 0, fmt.Errorf("the version of Landlock: %w", errno)
	case v < leastLandlock:
		return int(v), fmt.Errorf("version %d of Landlock is needed, which Linux 6.2 has, and there is version %d", leastLandlock, v)
	}
	return int(v), nil
}

// ruleset is a set of rules of Landlock that is being made.
type ruleset struct {
	fd   int
	held uint64 // rights that it holds
	err  error  // the first one
}

// newRuleset returns an empty set of rules, by which nothing is allowed: neither files, nor TCP if tcp is set, nor, from the
// versions on that can hold them, signals and abstract sockets of others.
func newRuleset(version int, tcp bool) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: heldRights}
	if version >= 4 && tcp {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	size := map[bool]uintptr{true: 24, false: 16}[version >= 6] // of the part of attr that the version knows
	if version < 4 {
		size = 8
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("make rules of Landlock: %w", errno)
	}
	return &ruleset{fd: int(fd), held: attr.Handled_access_fs}, nil
}

// allow allows rights for a file or for a directory and all below it. A path that does not exist, or that the user
// cannot reach, needs no rule. Symbolic links are not followed.
func (r *ruleset) allow(path string, rights uint64) {
	if r.err != nil || rights == 0 || path == "" {
		return
	}
	fd, err := openPath(path, unix.O_PATH)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
		return
	case err != nil:
		r.err = fmt.Errorf("open %s: %w", path, err)
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		r.err = fmt.Errorf("look at %s: %w", path, err)
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return
	case unix.S_IFDIR:
	default:
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.held, Parent_fd: int32(fd)}
	if attr.Allowed_access == 0 {
		return
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		r.err = fmt.Errorf("allow %s: %w", path, errno)
	}
}

// openPath opens a path that has no links, which another command could have put there meanwhile.
func openPath(path string, flags int) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW), Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// grant is allow with exceptions: what lies below path and is an exception has only the rights that it has there.
// A directory that holds an exception has, itself, the rights that all exceptions in it have, and that to be listed: rights
// of a directory are those of all below it.
func (r *ruleset) grant(path string, rights uint64, exceptions map[string]uint64) {
	common, any := rights, false
	for e, kept := range exceptions {
		if contains(e, path) {
			rights &= kept
		} else if contains(path, e) {
			common &= kept
			any = true
		}
	}
	common &= rights
	if !any || common == rights {
		r.allow(path, rights)
		return
	}
	r.allow(path, common|rights&unix.LANDLOCK_ACCESS_FS_READ_DIR)
	var entries []os.DirEntry
	fd, err := openPath(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		dir := os.NewFile(uintptr(fd), path)
		entries, err = dir.ReadDir(-1)
		dir.Close()
	}
	if err != nil && !errors.Is(err, unix.ELOOP) && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.ENOTDIR) {
		r.err = errors.Join(r.err, err)
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			r.grant(filepath.Join(path, e.Name()), rights, exceptions)
		}
	}
}

// landlock fills the rules for limits.
func (l *limits) landlock(r *ruleset, temp string, namespaces bool) error {
	exceptions := make(map[string]uint64, len(l.closed)+len(l.protected))
	if !namespaces { // else they are covered by mounts
		for p := range l.protected {
			exceptions[p] = readRights
		}
		for p := range l.blanked {
			exceptions[p] = 0
		}
		for p := range l.closed {
			if unix.Access(p, unix.R_OK) == nil || unix.Access(p, unix.X_OK) == nil { // what the user cannot reach needs no exception, such as /etc/shadow
				exceptions[p] = 0
			}
		}
	}
	for _, p := range l.read {
		r.grant(p, readRights, exceptions)
	}
	for _, p := range l.write {
		r.grant(p, writeRights, exceptions)
	}
	switch {
	case !namespaces:
		r.allow(temp, writeRights)
	case l.cache != "": // each is a mount, and rules of what is around it on the host do not hold for it
		for _, dir := range []string{tmpDir, varTmpDir, shmDir} {
			r.allow(l.keptTempDir(dir), writeRights)
		}
	}
	for _, p := range l.needs.Read {
		r.grant(p, readRights, within(exceptions, p))
	}
	for _, p := range l.needs.Write {
		r.grant(p, writeRights, within(exceptions, p))
	}
	return r.err
}

// within returns the exceptions below a path.
func within(exceptions map[string]uint64, path string) map[string]uint64 {
	below := make(map[string]uint64)
	for e, kept := range exceptions {
		if e != path && contains(path, e) {
			below[e] = kept
		}
	}
	return below
}
