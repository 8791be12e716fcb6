//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"loki/internal/sandbox/shim"
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
	for _, dir := range []string{rootDir, tmpDir, varTmpDir, shmDir} {
		if err := os.Mkdir(filepath.Join(temp, dir), 0o700); err != nil {
			return err
		}
	}
	return unix.Mknod(filepath.Join(temp, closedFile), unix.S_IFSOCK, 0) // which root cannot open either
}

// root plans a root directory that has only the places of the limits: those that are not written cannot be changed, the
// protected ones in them neither, and closed ones are covered.
type root struct {
	p     *plan
	at    string // where it is mounted until it is the root
	bound []string
	shut  []string // directories below those of temporary files that lead to places, and are not for temporary files
	made  map[string]bool
}

// newRoot plans the root, and makes it the root of the shim.
func (l *limits) newRoot(p *plan, temp, dir string) {
	r := &root{p: p, at: filepath.Join(temp, rootDir), made: map[string]bool{"/": true}}
	none := p.Text("none")
	p.call("separate mounts", unix.SYS_MOUNT, none, p.Text("/"), shim.Number(0), shim.Number(unix.MS_REC|unix.MS_PRIVATE), shim.Number(0))
	r.tmpfs("")
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

// temporary returns the directory that a child has as one for temporary files: one of this call, or, where it may write in the
// workspace, one that is kept for later calls, since files that are moved there must not be lost.
func (l *limits) temporary(temp, name string) string {
	if l.cache == "" {
		return filepath.Join(temp, name)
	}
	return filepath.Join(filepath.Dir(l.cache), name)
}

// binds returns the places of the root, those that hold others first.
func (l *limits) binds(temp string) []bind {
	all := []bind{
		{"/proc", "/proc", false},
		{l.temporary(temp, tmpDir), "/tmp", true},
		{l.temporary(temp, varTmpDir), "/var/tmp", true},
		{l.temporary(temp, shmDir), "/dev/shm", true},
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

// mount plans a mount of a place that is there. tolerated are errors of the target.
func (r *root) mount(b bind, tolerated ...syscall.Errno) {
	p := r.p
	p.Add(shim.Call{
		Label: "open " + b.source, Number: unix.SYS_OPEN_TREE, Result: tree,
		Args: []shim.Arg{cwd, p.Text(b.source), shim.Number(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW)},
	})
	if !b.write {
		p.call("protect "+b.target, unix.SYS_MOUNT_SETATTR, tree.Arg(), p.Text(""), shim.Number(unix.AT_EMPTY_PATH|unix.AT_RECURSIVE), readOnly(p), shim.Number(attrSize))
	}
	p.Add(shim.Call{
		Label: "mount " + b.target, Number: unix.SYS_MOVE_MOUNT, Tolerated: tolerated,
		Args: []shim.Arg{tree.Arg(), p.Text(""), cwd, p.Text(r.at + b.target), shim.Number(unix.MOVE_MOUNT_F_EMPTY_PATH)},
	})
	p.call("close "+b.source, unix.SYS_CLOSE, tree.Arg())
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

// cover plans what lies over the protected and closed places below those that are written, and once more what the child
// needs there. It returns the directories that are to be protected at the end.
func (r *root) cover(l *limits, temp string) (covered []string) {
	bound := slices.Clone(r.bound)
	visible := func(path string) bool {
		return exists(path) && slices.ContainsFunc(bound, func(b string) bool { return b != path && contains(b, path) })
	}
	for _, dir := range slices.Sorted(maps.Keys(l.held)) {
		if l.writes(dir) && visible(dir) { // what is a mount cannot be moved away, and another one put in its place
			r.mount(bind{dir, dir, true})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(l.protected)) {
		if _, closed := l.closed[path]; !closed && visible(path) {
			r.mount(bind{path, path, false})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(l.closed)) {
		info, err := os.Lstat(path)
		if err != nil || !visible(path) || slices.ContainsFunc(covered, func(c string) bool { return contains(c, path) }) {
			continue
		}
		switch {
		case info.IsDir():
			r.tmpfs(path)
			covered = append(covered, path)
			r.bound = slices.DeleteFunc(r.bound, func(b string) bool { return contains(b, path) || contains(path, b) })
			for _, b := range l.needed(path) {
				r.bind(b)
			}
		case info.Mode()&os.ModeSymlink == 0:
			r.mount(bind{filepath.Join(temp, closedFile), path, false}, unix.ENOENT) // it may be gone by then
		}
	}
	return covered
}

// needed returns what the child needs below a closed directory, places that hold others first.
func (l *limits) needed(closed string) (needed []bind) {
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
	data := binary.NativeEndian.AppendUint32(nil, kept) // effective, permitted, inheritable, and the same of those from 32 on
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
