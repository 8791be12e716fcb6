//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"loki/internal/base/process/sandbox/shim"
)

// bind is a place of the new root.
type bind struct {
	source, target string
	write          bool
}

// Directories in the temporary directory of a box with namespaces.
const (
	rootDir    = "root"   // where the new root is mounted
	closedFile = "closed" // covers files that are closed
)

// layout makes what the new root needs in a temporary directory.
func layout(temp string) error {
	if err := os.Mkdir(filepath.Join(temp, rootDir), 0o700); err != nil {
		return err
	}
	return unix.Mknod(filepath.Join(temp, closedFile), unix.S_IFSOCK, 0) // which root cannot open either
}

// root plans a root directory that has only the places of the limits: places that are not written cannot be changed,
// nor can protected ones in them, and closed ones are covered.
type root struct {
	p     *plan
	at    string // where it is mounted until it is the root
	bound []string
	shut  []string // directories below those of temporary files that lead to places, and are not for temporary files
	made  map[string]bool

	emptied  bool     // there is an empty file system
	examined shim.Arg // where what is known of a file is put
}

// newRoot plans the root, and makes it the root of the shim.
func (l *limits) newRoot(p *plan, temp, dir string, rights uint64) {
	r := &root{p: p, at: filepath.Join(temp, rootDir), made: map[string]bool{"/": true}}
	none := p.Text("none")
	p.call("separate mounts", unix.SYS_MOUNT, none, p.Text("/"), shim.Number(0), shim.Number(unix.MS_REC|unix.MS_PRIVATE), shim.Number(0))
	r.tmpfs("")
	if l.cache == "" {
		for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
			r.scratch(dir, rights)
		}
	}
	for _, b := range l.binds(temp) {
		r.bind(b)
	}
	for _, path := range slices.Sorted(maps.Keys(l.links)) {
		if slices.ContainsFunc(r.bound, func(b string) bool { return contains(b, path) }) {
			continue // it is there
		}
		r.parents(path)
		p.Add(shim.Call{
			Label: "link " + path, Number: unix.SYS_SYMLINKAT, Tolerated: []syscall.Errno{unix.EEXIST},
			Args: []shim.Arg{p.Text(l.links[path]), cwd, p.Text(r.at + path)},
		})
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		r.parents("/dev/" + name)
		p.call("link /dev/"+name, unix.SYS_SYMLINKAT, p.Text("/proc/self/fd"+target), cwd, p.Text(r.at+"/dev/"+name))
	}
	covered := r.cover(l, temp)
	for _, path := range slices.Concat(covered, r.shut) {
		r.readOnly(path, 0)
	}
	r.readOnly("", 0)
	dot := p.Text(".")
	p.call("enter the new root", unix.SYS_CHDIR, p.Text(r.at))
	p.call("change the root", unix.SYS_PIVOT_ROOT, dot, dot)
	p.call("leave the old root", unix.SYS_UMOUNT2, dot, shim.Number(unix.MNT_DETACH))
	p.call("enter the working directory "+dir, unix.SYS_CHDIR, p.Text(dir))
}

// cwd is AT_FDCWD: paths are not relative to a descriptor.
var cwd = shim.Number(1<<64 + unix.AT_FDCWD)

// tree is where the descriptor of a mount is kept.
const tree shim.Result = 1

// keptTempDir returns a directory for temporary files that is kept for later calls, since files that are moved there must not be lost.
func (l *limits) keptTempDir(name string) string { return filepath.Join(filepath.Dir(l.cache), name) }

// scratch plans a directory for temporary files of this call only, in memory and bounded.
func (r *root) scratch(path string, rights uint64) {
	const opened shim.Result = 5
	p := r.p
	r.dir(path, false)
	name := p.Text("tmpfs")
	p.call("mount "+path, unix.SYS_MOUNT, name, p.Text(r.at+path), name, shim.Number(unix.MS_NOSUID|unix.MS_NODEV), p.Text("mode=0700,size=2g"))
	p.Add(shim.Call{
		Label: "open " + path, Number: unix.SYS_OPENAT, Result: opened,
		Args: []shim.Arg{cwd, p.Text(r.at + path), shim.Number(unix.O_PATH | unix.O_CLOEXEC), shim.Number(0)},
	})
	beneath := p.Bytes(binary.NativeEndian.AppendUint64(make([]byte, 0, 16), rights)[:16]) // unix.LandlockPathBeneathAttr
	p.Store(beneath, 8, 4, opened.Arg())
	p.call("allow "+path, unix.SYS_LANDLOCK_ADD_RULE, shim.Number(rulesFD), shim.Number(unix.LANDLOCK_RULE_PATH_BENEATH), beneath, shim.Number(0))
	p.call("close "+path, unix.SYS_CLOSE, opened.Arg())
}

// binds returns the places of the root, the ones that hold others first.
func (l *limits) binds(temp string) []bind {
	all := []bind{
		{"/proc", "/proc", false},
	}
	if l.cache != "" {
		all = append(all, bind{l.keptTempDir(tmpDir), "/tmp", true}, bind{l.keptTempDir(varTmpDir), "/var/tmp", true}, bind{l.keptTempDir(shmDir), "/dev/shm", true})
	}
	add := func(paths []string, write bool) {
		for _, p := range paths {
			if p != "" && p != "/" {
				all = append(all, bind{p, p, write})
			}
		}
	}
	add(l.read, false)
	add(l.write, true)
	add(l.needs.Read, false)
	add(l.needs.Write, true)
	slices.SortStableFunc(all, func(a, b bind) int {
		if c := strings.Compare(a.target, b.target); c != 0 {
			return c
		}
		return map[bool]int{true: -1, false: 1}[a.write] // of two alike the one that is written counts
	})
	var kept []bind
	for _, b := range all {
		around := slices.IndexFunc(kept, func(k bind) bool {
			return contains(k.target, b.target) && k.source == k.target && (k.write || !b.write)
		})
		if around < 0 && exists(b.source) {
			kept = append(kept, b)
		}
	}
	return kept
}

// parents plans the directories above a path that no bound place has.
func (r *root) parents(path string) { r.dir(filepath.Dir(path), true) }

// dir plans a directory, which leads to a place or is where one is mounted.
func (r *root) dir(path string, leads bool) {
	if r.made[path] || slices.ContainsFunc(r.bound, func(b string) bool { return contains(b, path) }) {
		return
	}
	r.parents(path)
	r.made[path] = true
	r.p.Add(shim.Call{
		Label: "make the directory " + path, Number: unix.SYS_MKDIRAT, Tolerated: []syscall.Errno{unix.EEXIST},
		Args: []shim.Arg{cwd, r.p.Text(r.at + path), shim.Number(0o755)},
	})
	if dir := filepath.Dir(path); leads && (dir == "/tmp" || dir == "/var/tmp") {
		r.shutOff(path)
	}
}

// shutOff makes a directory that was made among temporary files a mount of its own, to be protected at the end: what a
// child writes beside the workspace would seem to be kept otherwise.
func (r *root) shutOff(path string) {
	r.mount(bind{r.at + path, path, true})
	r.shut = append(r.shut, path)
}

// bind plans a place.
func (r *root) bind(b bind) {
	if slices.ContainsFunc(r.bound, func(k string) bool { return contains(k, b.target) }) {
		// the place around it has the mount point
	} else if info, err := os.Stat(b.source); err == nil && info.IsDir() {
		r.dir(b.target, false)
	} else {
		r.parents(b.target)
		r.p.Add(shim.Call{
			Label: "make the file " + b.target, Number: unix.SYS_MKNODAT, Tolerated: []syscall.Errno{unix.EEXIST},
			Args: []shim.Arg{cwd, r.p.Text(r.at + b.target), shim.Number(unix.S_IFREG | 0o644), shim.Number(0)},
		})
	}
	r.mount(b)
	if b.source == b.target { // others are empty
		r.bound = append(r.bound, b.target)
	}
}

// mount plans a mount of a place that is there. Neither the place nor what it is mounted on is found by way of a link, which another
// command could put there meanwhile. tolerated are errors of the target.
func (r *root) mount(b bind, tolerated ...syscall.Errno) {
	p := r.p
	p.open("open "+b.source, b.source, at)
	r.copyTree(b.target, b.write)
	p.call("close "+b.source, unix.SYS_CLOSE, at.Arg())
	p.open(findLabel+b.target, r.at+b.target, at, tolerated...)
	r.attach(b.target, tolerated != nil)
}

// copyTree plans a copy of the mounts of what is open, to be mounted at a target.
func (r *root) copyTree(target string, write bool) {
	p := r.p
	p.Add(shim.Call{
		Label: "copy for " + target, Number: unix.SYS_OPEN_TREE, Result: tree,
		Args: []shim.Arg{at.Arg(), p.Text(""), shim.Number(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_EMPTY_PATH)},
	})
	if !write {
		p.call("protect "+target, unix.SYS_MOUNT_SETATTR, tree.Arg(), p.Text(""), shim.Number(unix.AT_EMPTY_PATH|unix.AT_RECURSIVE), readOnly(p), shim.Number(attrSize))
	}
}

// attach plans that the copy is mounted on what is open, and both are closed. optional is set if that may not have been there to open.
func (r *root) attach(target string, optional bool) {
	p := r.p
	var gone []syscall.Errno
	if optional {
		gone = []syscall.Errno{unix.EBADF}
	}
	p.Add(shim.Call{
		Label: "mount " + target, Number: unix.SYS_MOVE_MOUNT, Tolerated: gone,
		Args: []shim.Arg{tree.Arg(), p.Text(""), at.Arg(), p.Text(""), shim.Number(unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH)},
	})
	p.Add(shim.Call{Label: "close " + target, Number: unix.SYS_CLOSE, Args: []shim.Arg{at.Arg()}, Tolerated: gone})
	p.call("close a mount", unix.SYS_CLOSE, tree.Arg())
}

// mountOver plans a mount of a place over itself.
func (r *root) mountOver(l *limits, path string, write bool) {
	r.find(l, path)
	r.copyTree(path, write)
	r.attach(path, false)
}

// find plans that a place is opened. If the limits know which file it is, it must be that one: otherwise another command could move
// it away meanwhile, so that the place is covered and the file is not.
func (r *root) find(l *limits, path string) {
	p, label := r.p, findLabel+path
	p.open(label, r.at+path, at)
	id, known := l.ids[path]
	if !known {
		return
	}
	if r.examined == (shim.Arg{}) {
		r.examined = p.Bytes(make([]byte, unsafe.Sizeof(unix.Statx_t{})))
	}
	p.call(label, unix.SYS_STATX, at.Arg(), p.Text(""), shim.Number(unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT), shim.Number(unix.STATX_INO), r.examined)
	p.Compare(label, r.examined, int(unsafe.Offsetof(unix.Statx_t{}.Ino)), id.Ino)
	p.Compare(label, r.examined, int(unsafe.Offsetof(unix.Statx_t{}.Dev_major)), uint64(unix.Major(id.Dev))|uint64(unix.Minor(id.Dev))<<32)
}

// findLabel is what the label of the step begins with that finds a place.
const findLabel = "find "

// at is where the descriptor of a place is kept.
const at shim.Result = 4

// open plans that a path is opened, without its content and without following links.
func (p *plan) open(label, path string, to shim.Result, tolerated ...syscall.Errno) {
	how := binary.NativeEndian.AppendUint64(nil, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	how = binary.NativeEndian.AppendUint64(how, 0)
	how = binary.NativeEndian.AppendUint64(how, unix.RESOLVE_NO_SYMLINKS)
	p.Add(shim.Call{
		Label: label, Number: unix.SYS_OPENAT2, Result: to, Tolerated: tolerated,
		Args: []shim.Arg{cwd, p.Text(path), p.Bytes(how), shim.Number(uint64(len(how)))},
	})
}

// processes plans that the command is in a process namespace of its own, which ends with it, and sees no other in /proc, where that
// can be mounted.
func (p *plan) processes() {
	p.call("make a process namespace", unix.SYS_UNSHARE, shim.Number(unix.CLONE_NEWPID))
	p.Fork("start the command")
	p.call("end with this program", unix.SYS_PRCTL, shim.Number(unix.PR_SET_PDEATHSIG), shim.Number(uint64(unix.SIGKILL)))
	p.call("start a session", unix.SYS_SETSID)
	proc := p.Text("proc")
	p.Add(shim.Call{
		Label: "mount /proc", Number: unix.SYS_MOUNT, Tolerated: []syscall.Errno{unix.EPERM, unix.EACCES, unix.EBUSY, unix.EINVAL},
		Args: []shim.Arg{proc, p.Text("/proc"), proc, shim.Number(unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC), shim.Number(0)},
	})
	own := place{"/proc/self/maps", "the memory of the program itself, in which Bun finds its stack"}
	for _, s := range append(slices.Clip(systemPlaces["linux"]), own) { // what can be read there has other inodes now
		if !strings.HasPrefix(s.path, "/proc/") {
			continue
		}
		rights := uint64(fileRights & readRights)
		if info, err := os.Stat(s.path); err == nil && info.IsDir() {
			rights = readRights
		}
		rule := p.Bytes(append(binary.NativeEndian.AppendUint64(nil, rights), 0, 0, 0, 0, 0, 0, 0, 0))
		p.Add(shim.Call{
			Label: "open " + s.path, Number: unix.SYS_OPENAT, Result: at, Skip: 3,
			Args: []shim.Arg{cwd, p.Text(s.path), shim.Number(unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC)},
		})
		p.Store(rule, 8, 4, at.Arg())
		p.call("allow "+s.path, unix.SYS_LANDLOCK_ADD_RULE, shim.Number(rulesFD), shim.Number(unix.LANDLOCK_RULE_PATH_BENEATH), rule, shim.Number(0))
		p.call("close "+s.path, unix.SYS_CLOSE, at.Arg())
	}
}

// attrSize is the size of the attributes of a mount: what to set, to clear, how it propagates, and a namespace.
const attrSize = 32

func readOnly(p *plan) shim.Arg {
	return p.Bytes(binary.NativeEndian.AppendUint64(make([]byte, 0, attrSize), unix.MOUNT_ATTR_RDONLY)[:attrSize])
}

func (r *root) readOnly(path string, flags uint64) {
	r.p.call("protect "+path+"/", unix.SYS_MOUNT_SETATTR, cwd, r.p.Text(r.at+path), shim.Number(flags), readOnly(r.p), shim.Number(attrSize))
}

func (r *root) tmpfs(path string) {
	p := r.p
	name := p.Text("tmpfs")
	p.call("mount "+path+"/", unix.SYS_MOUNT, name, p.Text(r.at+path), name, shim.Number(unix.MS_NOSUID|unix.MS_NODEV), p.Text("mode=0711,size=1m"))
}

// empty plans that an empty directory lies over one that is there, which is not found by way of a link, as in mount. All are mounts of
// one file system.
func (r *root) empty(l *limits, path string) {
	const context, first shim.Result = 5, 6
	p, mounted := r.p, first
	if r.emptied {
		mounted = tree
		p.Add(shim.Call{
			Label: "make a cover of " + path, Number: unix.SYS_OPEN_TREE, Result: tree,
			Args: []shim.Arg{first.Arg(), p.Text(""), shim.Number(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)},
		})
	} else {
		p.Add(shim.Call{Label: "make a cover of " + path, Number: unix.SYS_FSOPEN, Result: context, Args: []shim.Arg{p.Text("tmpfs"), shim.Number(unix.FSOPEN_CLOEXEC)}})
		for _, option := range [][2]string{{"mode", "0711"}, {"size", "1m"}} {
			p.call("set up a cover of "+path, unix.SYS_FSCONFIG, context.Arg(), shim.Number(unix.FSCONFIG_SET_STRING), p.Text(option[0]), p.Text(option[1]), shim.Number(0))
		}
		p.call("set up a cover of "+path, unix.SYS_FSCONFIG, context.Arg(), shim.Number(unix.FSCONFIG_CMD_CREATE), shim.Number(0), shim.Number(0), shim.Number(0))
		p.Add(shim.Call{
			Label: "make a cover of " + path, Number: unix.SYS_FSMOUNT, Result: first,
			Args: []shim.Arg{context.Arg(), shim.Number(unix.FSMOUNT_CLOEXEC), shim.Number(unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)},
		})
		p.call("close what covers "+path, unix.SYS_CLOSE, context.Arg())
	}
	r.find(l, path)
	p.call("cover "+path, unix.SYS_MOVE_MOUNT, mounted.Arg(), p.Text(""), at.Arg(), p.Text(""), shim.Number(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	p.call("close "+path, unix.SYS_CLOSE, at.Arg())
	if r.emptied {
		p.call("close what covers "+path, unix.SYS_CLOSE, tree.Arg())
	}
	r.emptied = true
}

// cover plans what lies over the protected and closed places below the written ones, and again what the child needs
// there. It returns the directories to protect at the end.
func (r *root) cover(l *limits, temp string) (covered []string) {
	bound := slices.Clone(r.bound)
	visible := func(path string) bool {
		_, known := l.ids[path]
		return (known || exists(path)) && slices.ContainsFunc(bound, func(b string) bool { return b != path && contains(b, path) })
	}
	for _, dir := range slices.Sorted(maps.Keys(l.held)) {
		if l.writes(dir) && visible(dir) { // what is a mount cannot be moved away, and another one put in its place
			r.mountOver(l, dir, true)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(l.protected)) {
		if _, closed := l.closed[path]; !closed && visible(path) {
			r.mountOver(l, path, false)
		}
	}
	var hidden []string // what is empty
	for _, path := range slices.Sorted(maps.Keys(l.closed)) {
		info, err := os.Lstat(path)
		if _, known := l.ids[path]; err != nil && known && visible(path) {
			r.find(l, path) // it fails: what cannot be looked at has another name
		}
		if err != nil || !visible(path) || slices.ContainsFunc(slices.Concat(covered, hidden), func(c string) bool { return contains(c, path) }) {
			continue
		}
		switch {
		case info.IsDir():
			needed := l.neededBinds(path)
			if len(needed) == 0 {
				r.empty(l, path)
				hidden = append(hidden, path)
				continue
			}
			r.tmpfs(path)
			covered = append(covered, path)
			r.bound = slices.DeleteFunc(r.bound, func(b string) bool { return contains(b, path) || contains(path, b) })
			for _, b := range needed {
				r.bind(b)
			}
		case info.Mode()&os.ModeSymlink == 0:
			r.mount(bind{filepath.Join(temp, closedFile), path, false}, unix.ENOENT) // it may be gone by then
		}
	}
	for i, path := range slices.Sorted(maps.Keys(l.blanked)) {
		if _, closed := l.closed[path]; closed || !visible(path) && !slices.Contains(bound, path) {
			continue
		}
		shown := filepath.Join(temp, "blanked"+strconv.Itoa(i))
		if os.WriteFile(shown, []byte(l.blanked[path]), 0o600) != nil {
			shown = filepath.Join(temp, closedFile)
		}
		r.mount(bind{shown, path, false}, unix.ENOENT)
	}
	return covered
}

// neededBinds returns what the child needs below a closed directory, places that hold others first.
func (l *limits) neededBinds(closed string) (needed []bind) {
	for _, b := range []struct {
		paths []string
		write bool
	}{{l.needs.Read, false}, {l.needs.Write, true}} {
		for _, p := range b.paths {
			if contains(closed, p) && p != closed && exists(p) {
				needed = append(needed, bind{p, p, b.write})
			}
		}
	}
	slices.SortStableFunc(needed, func(a, b bind) int { return strings.Compare(a.target, b.target) })
	return slices.CompactFunc(needed, func(a, b bind) bool { return a.target == b.target && (a.write || !b.write) })
}

// mappings are how a user namespace has the users, or groups, of the one around it: all if root makes it, else this one.
func mappings(kind string, id int) ([]syscall.SysProcIDMap, error) {
	if os.Geteuid() != 0 {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}, nil
	}
	text, err := os.ReadFile("/proc/self/" + kind + "_map")
	if err != nil {
		return nil, err
	}
	var all []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		var inside, outside, size uint32
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			return nil, err
		}
		size = min(size, 1<<31-1)
		all = append(all, syscall.SysProcIDMap{ContainerID: int(inside), HostID: int(inside), Size: int(size)})
	}
	return all, nil
}

// namespaces has the shim start in namespaces of its own.
func namespaces(attr *syscall.SysProcAttr, network bool) error {
	var err error
	if attr.UidMappings, err = mappings("uid", os.Geteuid()); err != nil {
		return err
	}
	if attr.GidMappings, err = mappings("gid", os.Getegid()); err != nil {
		return err
	}
	attr.GidMappingsEnableSetgroups = os.Geteuid() == 0
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	if network {
		attr.Cloneflags |= unix.CLONE_NEWNET
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN)
	}
	return nil
}

// loopback plans that the loopback interface of the network namespace is up.
func (p *plan) loopback() {
	socket := shim.Result(2)
	p.Add(shim.Call{
		Label: "open a socket", Number: unix.SYS_SOCKET, Result: socket,
		Args: []shim.Arg{shim.Number(unix.AF_INET), shim.Number(unix.SOCK_DGRAM | unix.SOCK_CLOEXEC), shim.Number(0)},
	})
	request := make([]byte, 40)
	copy(request, "lo")
	binary.NativeEndian.PutUint16(request[unix.IFNAMSIZ:], unix.IFF_UP|unix.IFF_RUNNING)
	p.call("start the loopback interface", unix.SYS_IOCTL, socket.Arg(), shim.Number(unix.SIOCSIFFLAGS), p.Bytes(request))
	p.call("close a socket", unix.SYS_CLOSE, socket.Arg())
}

// rootCapabilities are what a child of root keeps: what changes files and users, as far as the rest of its limits allows.
const rootCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID

// capabilities plans that the child has none but these.
func (p *plan) capabilities(kept uint32) {
	p.call("give up ambient capabilities", unix.SYS_PRCTL, shim.Number(unix.PR_CAP_AMBIENT), shim.Number(unix.PR_CAP_AMBIENT_CLEAR_ALL), shim.Number(0), shim.Number(0), shim.Number(0))
	head := binary.NativeEndian.AppendUint32(nil, unix.LINUX_CAPABILITY_VERSION_3)
	data := binary.NativeEndian.AppendUint32(nil, kept) // effective, permitted, inheritable, and the same of the ones from 32 on
	data = binary.NativeEndian.AppendUint32(data, kept)
	p.call("give up capabilities", unix.SYS_CAPSET, p.Bytes(append(head, 0, 0, 0, 0)), p.Bytes(append(data, make([]byte, 16)...)))
}

// keptCapabilities returns those of rootCapabilities that a child of this process can keep.
func keptCapabilities(namespaces bool) uint32 {
	if os.Geteuid() != 0 {
		return 0
	}
	if namespaces {
		return rootCapabilities
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&head, &data[0]) != nil {
		return 0
	}
	return rootCapabilities & data[0].Permitted
}
