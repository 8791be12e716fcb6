//go:build amd64 || arm64

package escapetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileAttempts change or read files outside of the workspace, or such inside as run later.
var fileAttempts = map[string]attempt{
	"write_home":    {gain: "a file of the user", try: func(c *child) { c.write(c.home("new")) }},
	"write_outside": {gain: "a file of the user", try: func(c *child) { c.write(c.out("file")) }},
	"write_bashrc": {gain: "code in the user's shell", try: func(c *child) {
		c.write(c.home(".bashrc"), c.home(".profile"), c.home(".zshenv"), c.home(".bash_login"))
	}},
	"write_authorized_keys": {gain: "a login", try: func(c *child) { c.write(c.home(".ssh/authorized_keys")) }},
	"write_autostart": {gain: "code in the user's session", try: func(c *child) {
		c.write(c.home(".config/autostart/x.desktop"), c.home(".config/systemd/user/x.service"))
	}},
	"write_toolchain":       {gain: "code in programs of the user", try: func(c *child) { c.write(c.home(".cargo/bin/tool"), c.home(".local/bin/tool"), c.home("go/bin/x")) }},
	"write_gitconfig":       {gain: "code by git", try: func(c *child) { c.write(c.home(".gitconfig"), c.home(".config/git/config")) }},
	"write_own_files":       {gain: "rules of this program", try: func(c *child) { c.write(c.home(".config/loki/config.yaml"), c.home(".local/state/loki/trust")) }},
	"write_system":          {gain: "code in the system", control: "it would be the system's", try: func(c *child) { c.write(systemFiles(c.Nonce)...) }},
	"write_other_workspace": {gain: "code of another project", try: func(c *child) { c.write(c.home("src/other/main.go")) }},
	"write_sibling":         {gain: "a name that begins as the workspace's", try: func(c *child) { c.write(c.Workspace+"-2/x", c.Workspace+".git") }},
	"write_temp_of_others":  {gain: "a file of another program", try: func(c *child) { c.write(c.Temp...) }},
	"append":                {gain: "a file of the user", try: func(c *child) { c.open(c.out("file"), unix.O_WRONLY|unix.O_APPEND, "x") }},
	"write_by_both":         {gain: "a file of the user", try: func(c *child) { c.open(c.out("file"), unix.O_RDWR, "x") }},
	"truncate":              {gain: "a file of the user", try: func(c *child) { c.err(unix.Truncate(c.out("file"), 0)) }},
	"truncate_by_open":      {gain: "a file of the user", try: func(c *child) { c.open(c.out("file"), unix.O_RDONLY|unix.O_TRUNC, "") }},
	"create_exclusive":      {gain: "a file of the user", try: func(c *child) { c.open(c.out("new"), unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY, "") }},
	"create_unnamed": {gain: "a file of the user", try: func(c *child) {
		fd, err := unix.Open(c.Outside, unix.O_TMPFILE|unix.O_RDWR, 0o644)
		c.err(err)
		if err == nil {
			c.err(unix.Linkat(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", fd), unix.AT_FDCWD, c.out("new"), unix.AT_SYMLINK_FOLLOW))
		}
	}},
	"remove":           {gain: "a file of the user", try: func(c *child) { c.err(os.Remove(c.out("file"))) }},
	"remove_directory": {gain: "a directory of the user", try: func(c *child) { c.err(os.RemoveAll(c.out("dir"))) }},
	"make_directory":   {gain: "a directory of the user", try: func(c *child) { c.err(os.Mkdir(c.out("new"), 0o755)) }},
	"make_fifo":        {gain: "a file of the user", try: func(c *child) { c.err(unix.Mkfifo(c.out("new"), 0o644)) }},
	"make_link":        {gain: "a file of the user", try: func(c *child) { c.err(os.Symlink("/etc/passwd", c.out("new"))) }},
	"make_hard_link":   {gain: "a file of the user", try: func(c *child) { c.err(os.Link(c.out("file"), c.out("new"))) }},
	"make_socket":      {gain: "a server that other programs talk to", try: func(c *child) { c.bind(c.home("s")) }},
	"rename":           {gain: "a file of the user", try: func(c *child) { c.err(os.Rename(c.out("file"), c.out("new"))) }},
	"rename_in":        {gain: "a file of the user", try: func(c *child) { c.err(os.Rename(c.out("file"), c.inside("stolen"))) }},
	"rename_to_temp":   {gain: "a file of the user", try: func(c *child) { c.err(os.Rename(c.out("file"), c.temp("stolen"))) }},
	"rename_out":       {gain: "a file of the user", try: func(c *child) { c.write(c.temp("x")); c.err(os.Rename(c.temp("x"), c.out("file"))) }},
	"rename_over_rc":   {gain: "code in the user's shell", try: func(c *child) { c.write(c.inside("x")); c.err(os.Rename(c.inside("x"), c.home(".bashrc"))) }},
	"rename_exchange": {gain: "a file of the user", try: func(c *child) {
		c.write(c.inside("x"))
		c.err(unix.Renameat2(unix.AT_FDCWD, c.inside("x"), unix.AT_FDCWD, c.out("file"), unix.RENAME_EXCHANGE))
	}},
	"rename_workspace": {gain: "the workspace itself", try: func(c *child) { c.err(os.Rename(c.Workspace, c.Workspace+"-gone")) }},
	"hard_link_out":    {gain: "a file of the user", try: func(c *child) { c.write(c.inside("x")); c.err(os.Link(c.inside("x"), c.out("new"))) }},
	"hard_link_in": {gain: "a secret", try: func(c *child) {
		for _, to := range []string{c.inside("x"), c.temp("x")} {
			c.err(os.Link(c.home(".ssh/id_ed25519"), to))
			c.read(to)
		}
	}},
	"hard_link_by_descriptor": {gain: "a secret", try: func(c *child) {
		fd, err := unix.Open(c.home(".netrc"), unix.O_PATH, 0)
		c.err(err)
		c.err(unix.Linkat(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", fd), unix.AT_FDCWD, c.temp("x"), unix.AT_SYMLINK_FOLLOW))
		c.err(unix.Linkat(fd, "", unix.AT_FDCWD, c.temp("x"), unix.AT_EMPTY_PATH))
		c.read(c.temp("x"))
	}},
	"link_file_write": {gain: "a file of the user", try: func(c *child) { c.open(c.inside("link-file"), unix.O_WRONLY, "x") }},
	"link_directory":  {gain: "a file of the user", try: func(c *child) { c.write(c.inside("link-dir/new"), c.inside("link-dir/file")) }},
	"link_secret":     {gain: "a secret", try: func(c *child) { c.read(c.inside("link-secret")) }},
	"link_own":        {gain: "a secret", try: func(c *child) { c.err(os.Symlink(c.home(".aws"), c.temp("l"))); c.read(c.temp("l/credentials")) }},
	"link_chain": {gain: "a secret", try: func(c *child) {
		c.err(os.Symlink(c.Home, c.temp("a")))
		c.err(os.Symlink(c.temp("a/src/../.kube"), c.temp("b")))
		c.read(c.temp("b/config"))
	}},
	"link_race": {gain: "a secret", try: func(c *child) {
		c.write(c.temp("x"))
		c.err(os.Symlink(c.home(".netrc"), c.temp("l")))
		done := make(chan struct{})
		go func() {
			for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
				_ = unix.Renameat2(unix.AT_FDCWD, c.temp("x"), unix.AT_FDCWD, c.temp("l"), unix.RENAME_EXCHANGE)
			}
			close(done)
		}()
		for {
			if data, err := os.ReadFile(c.temp("x")); err == nil && len(data) > 20 {
				fmt.Println(string(data))
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}},
	"parent_directories": {gain: "a secret", try: func(c *child) {
		c.read(c.inside("../../.ssh/id_ed25519"), c.temp("../../../../../.."+c.home(".netrc")))
	}},
	"parent_by_descriptor": {gain: "a secret", try: func(c *child) {
		fd, err := unix.Open(c.Workspace, unix.O_PATH, 0)
		c.err(err)
		f, err := unix.Openat(fd, "../../.netrc", unix.O_RDONLY, 0)
		c.err(err)
		c.readFD(f)
	}},
	"change_directory": {gain: "a secret", alone: true, try: func(c *child) { c.err(os.Chdir(c.home(".ssh"))); c.read("id_ed25519"); c.write("new") }},
	"open_path_reopened": {gain: "a secret", try: func(c *child) {
		fd, err := unix.Open(c.home(".netrc"), unix.O_PATH, 0)
		c.err(err)
		c.read(fmt.Sprint("/proc/self/fd/", fd), fmt.Sprint("/dev/fd/", fd), fmt.Sprint("/proc/thread-self/fd/", fd))
		f, err := unix.Openat(fd, "", unix.O_RDONLY, 0)
		c.err(err)
		c.readFD(f)
	}},
	"proc_self_root": {gain: "a secret", try: func(c *child) { c.read("/proc/self/root" + c.home(".netrc")) }},
	"proc_self_cwd":  {gain: "a secret", try: func(c *child) { c.read("/proc/self/cwd/../../.netrc") }},
	"openat2": {gain: "a secret", try: func(c *child) {
		f, err := unix.Openat2(unix.AT_FDCWD, c.home(".netrc"), &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: unix.RESOLVE_NO_SYMLINKS})
		c.err(err)
		c.readFD(f)
	}},
	"execute_secret": {gain: "a secret by an error message", try: func(c *child) {
		c.sh("bash " + c.home(".netrc") + "; . " + c.home(".netrc") + "; sh -n " + c.home(".netrc"))
	}},
	"execute_outside": {gain: "a program of the user that is not a tool", try: func(c *child) {
		fd, err := unix.Open(c.home("src/other/main.go"), unix.O_PATH, 0)
		c.err(err)
		if err = unix.Access(c.home("src/other/main.go"), unix.R_OK); err == nil {
			c.run("/bin/sh", c.home("src/other/main.go"))
		}
		unix.Close(fd)
	}},
	"list_home": {gain: "names of the user's files", try: func(c *child) {
		entries, err := os.ReadDir(c.home("Documents"))
		c.err(err)
		for _, e := range entries {
			c.gained("%s", e.Name())
		}
	}},
	"list_temp": {gain: "names of files of others", try: func(c *child) {
		for _, path := range c.Temp {
			entries, err := os.ReadDir(filepath.Dir(path))
			c.err(err)
			for _, e := range entries {
				if e.Name() == filepath.Base(path) {
					c.gained("%s", e.Name())
				}
			}
		}
	}},
	"read_temp_of_others": {gain: "a secret", try: func(c *child) { c.read(c.Temp...) }},
	"map_file": {gain: "a file of the user", try: func(c *child) {
		fd, err := unix.Open(c.out("file"), unix.O_RDWR, 0)
		c.err(err)
		if m, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			m[0] = 'X'
			c.err(unix.Msync(m, unix.MS_SYNC))
		}
	}},
	"copy_file_range": {gain: "a secret", try: func(c *child) {
		in, err := unix.Open(c.home(".netrc"), unix.O_RDONLY, 0)
		c.err(err)
		out, _ := unix.Open(c.temp("x"), unix.O_CREAT|unix.O_RDWR, 0o644)
		_, err = unix.CopyFileRange(in, nil, out, nil, 100, 0)
		c.err(err)
		c.read(c.temp("x"))
	}},
	"mode": {gain: "a file of the user", try: func(c *child) { c.err(os.Chmod(c.out("file"), 0o777)) }},
	"mode_by_descriptor": {gain: "a file of the user", try: func(c *child) {
		fd, err := unix.Open(c.out("file"), unix.O_PATH, 0)
		c.err(err)
		c.err(unix.Fchmodat(fd, "", 0o777, unix.AT_EMPTY_PATH))
		c.err(os.Chmod(fmt.Sprint("/proc/self/fd/", fd), 0o777))
	}},
	"mode_of_secret": {gain: "a secret for others", try: func(c *child) { c.err(os.Chmod(c.home(".ssh/id_ed25519"), 0o666)) }},
	"owner":          {gain: "a file of the user", control: "for root only", try: func(c *child) { c.err(os.Chown(c.out("file"), 12345, 12345)) }},
	"times":          {gain: "a file of the user", try: func(c *child) { c.err(os.Chtimes(c.out("file"), time.Unix(1, 0), time.Unix(1, 0))) }},
	"attribute":      {gain: "a file of the user", try: func(c *child) { c.err(unix.Setxattr(c.out("file"), "user.x", []byte("y"), 0)) }},
	"attribute_acl": {gain: "a file of the user", control: "for file systems with lists of access", try: func(c *child) {
		acl := []byte{2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 7, 0, 255, 255, 255, 255, 32, 0, 7, 0, 255, 255, 255, 255}
		c.err(unix.Setxattr(c.out("file"), "system.posix_acl_access", acl, 0))
	}},
	"attribute_capability": {gain: "a program with rights", control: "for root only", try: func(c *child) {
		v := []byte{1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}
		c.err(unix.Setxattr(c.home(".cargo/bin/tool"), "security.capability", v, 0))
	}},
	"file_flags": {gain: "a file that the user cannot change", control: "not on every file system", try: func(c *child) {
		fd, err := unix.Open(c.inside(".git/config"), unix.O_RDONLY, 0)
		c.err(err)
		var flags uint64
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_GETFLAGS, uintptr(unsafe.Pointer(&flags))); errno == 0 {
			c.call("flags of a file", unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags)))
		}
	}},
	"setuid_file": {gain: "a program with the user's rights for others", control: "where the workspace is writable it is the user's own", try: func(c *child) {
		c.err(os.Chmod(c.home(".cargo/bin/tool"), 0o4755))
	}},
	"device_memory": {gain: "memory of the machine", control: "for root only", try: func(c *child) {
		for name, dev := range map[string]uint64{"mem": unix.Mkdev(1, 1), "port": unix.Mkdev(1, 4), "kmsg": unix.Mkdev(1, 11)} {
			path := c.temp(name)
			if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(dev)); err != nil {
				c.note(err)
				continue
			}
			if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
				c.gained("device %s %d", name, fd)
			} else {
				c.note(err)
			}
		}
	}},
	"device_block": {gain: "the disk", control: "for root only", try: func(c *child) {
		var st unix.Stat_t
		_ = unix.Stat("/", &st)
		c.err(unix.Mknod(c.temp("disk"), unix.S_IFBLK|0o666, int(st.Dev)))
		if fd, err := unix.Open(c.temp("disk"), unix.O_RDONLY, 0); err == nil {
			c.gained("disk %d", fd)
		}
	}},
	"devices": {gain: "devices of the machine", control: "for root only", try: func(c *child) {
		for _, path := range []string{
			"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control", "/dev/net/tun",
			"/dev/uinput", "/dev/input/event0", "/dev/vhost-vsock", "/dev/vsock", "/dev/dri/card0", "/dev/tty1", "/dev/tty0", "/dev/console", "/dev/vcs", "/dev/mapper/control", "/dev/userfaultfd", "/dev/snapshot", "/dev/rtc0", "/dev/watchdog",
		} {
			if path == "/dev/watchdog" {
				continue // opening it reboots
			}
			if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
				c.gained("%s %d", path, fd)
			}
		}
	}},
	"file_by_handle": {gain: "a secret", control: "for root only", try: func(c *child) {
		h, id, err := unix.NameToHandleAt(unix.AT_FDCWD, c.home(".netrc"), 0)
		c.err(err)
		if err != nil {
			return
		}
		fmt.Println("mount", id)
		m, _ := unix.Open(c.Workspace, unix.O_RDONLY, 0)
		fd, err := unix.OpenByHandleAt(m, h, unix.O_RDONLY)
		c.err(err)
		c.readFD(fd)
	}},
	"watch": {gain: "names of files that other programs use", control: "at other times only", try: func(c *child) {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, unix.O_RDONLY)
		if err == nil {
			c.gained("fanotify %d", fd)
		}
		c.err(err)
	}},
	"core_pattern": {gain: "code that the kernel runs", control: "it would be the system's", try: func(c *child) { c.system("/proc/sys/kernel/core_pattern") }},
	"modprobe": {gain: "code that the kernel runs", control: "it would be the system's", try: func(c *child) {
		c.system("/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/sys/kernel/uevent_helper", "/proc/sys/kernel/poweroff_cmd")
	}},
	"binfmt": {gain: "code in programs", control: "it would be the system's", try: func(c *child) { c.system("/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/binfmt_misc/status") }},
	"settings_of_kernel": {gain: "settings of the machine", control: "it would be the system's", try: func(c *child) {
		c.system("/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/mtrr",
			"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/block/vda/queue/scheduler", "/sys/module/printk/parameters/time", "/sys/firmware/efi/efivars/x")
	}},
	"cgroup": {gain: "limits of other processes", control: "it would be the system's", try: func(c *child) {
		c.err(os.Mkdir("/sys/fs/cgroup/loki-escaped-"+c.Nonce, 0o755))
		c.system("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory.max")
	}},
	"kernel_messages": {gain: "messages of the kernel", control: "for root only", try: func(c *child) {
		b := make([]byte, 100)
		if n, err := unix.Klogctl(3, b); err == nil {
			c.gained("%d bytes", n)
		}
		for _, path := range []string{"/proc/kmsg", "/proc/kcore", "/proc/kallsyms", "/proc/slabinfo", "/proc/kpagecount", "/proc/iomem", "/sys/kernel/debug/tracing/trace", "/sys/kernel/tracing/trace", "/sys/kernel/security/apparmor/profiles"} {
			if f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
				c.gained("%s", path)
				f.Close()
			}
		}
	}},
	"system_secrets": {gain: "passwords and keys of the system", control: "for root only", try: func(c *child) {
		c.can("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/sudoers", "/var/log/syslog", "/var/log/auth.log", "/var/log/journal", "/var/mail/root", "/var/spool/cron/crontabs", "/root/.ssh", "/etc/ssl/private/ssl-cert-snakeoil.key", "/var/lib/docker", "/var/backups", "/run/secrets", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/var/lib/systemd/random-seed")
		keys, _ := filepath.Glob("/etc/ssh/ssh_host_*_key")
		c.can(keys...)
	}},
	"mounts_of_others": {gain: "what is mounted", try: func(c *child) { c.can("/proc/1/mountinfo", "/proc/"+strconv.Itoa(c.Victim)+"/mountinfo") }},
}

// gitAttempts have programs run something later that were not confined.
var gitAttempts = map[string]attempt{
	"git_hook":      {gain: "code at the next commit", try: func(c *child) { c.write(c.inside(".git/hooks/pre-commit"), c.inside(".git/hooks/pre-push")) }},
	"git_hook_mode": {gain: "code at the next push", try: func(c *child) { c.err(os.Chmod(c.inside(".git/hooks/pre-push"), 0o777)) }},
	"git_config":    {gain: "code at the next status", try: func(c *child) { c.run("git", "config", "core.fsmonitor", "touch x") }},
	"git_config_written": {gain: "code at the next status", try: func(c *child) {
		c.open(c.inside(".git/config"), unix.O_WRONLY|unix.O_APPEND, "[core]\n\tfsmonitor = touch x\n")
	}},
	"git_config_renamed": {gain: "code at the next status", try: func(c *child) { c.write(c.inside("x")); c.err(os.Rename(c.inside("x"), c.inside(".git/config"))) }},
	"git_config_linked": {gain: "code at the next status", try: func(c *child) {
		c.err(os.Link(c.inside(".git/config"), c.inside("x")))
		c.open(c.inside("x"), unix.O_WRONLY|unix.O_APPEND, "[core]\n")
	}},
	"git_config_replaced": {gain: "code at the next status", try: func(c *child) {
		c.err(os.Remove(c.inside(".git/config")))
		c.err(os.Symlink(c.inside("x"), c.inside(".git/config")))
	}},
	"git_config_global": {gain: "code at the next status", try: func(c *child) { c.run("git", "config", "--global", "core.fsmonitor", "touch x") }},
	"git_hooks_moved":   {gain: "code at the next commit", try: func(c *child) { c.err(os.Rename(c.inside(".git/hooks"), c.inside("h"))) }},
	"git_moved":         {gain: "code at the next status", try: func(c *child) { c.err(os.Rename(c.inside(".git"), c.inside("g"))); c.run("git", "init", "-q") }},
	"git_exchanged": {gain: "code at the next status", try: func(c *child) {
		c.write(c.inside("g/config"))
		c.err(unix.Renameat2(unix.AT_FDCWD, c.inside("g"), unix.AT_FDCWD, c.inside(".git"), unix.RENAME_EXCHANGE))
	}},
	"git_removed":        {gain: "code at the next status", try: func(c *child) { c.err(os.RemoveAll(c.inside(".git"))); c.run("git", "init", "-q") }},
	"git_attributes":     {gain: "code at the next status", try: func(c *child) { c.write(c.inside(".git/info/attributes")) }},
	"git_common":         {gain: "code at the next status", try: func(c *child) { c.write(c.inside(".git/commondir")) }},
	"git_modules":        {gain: "code at the next status", try: func(c *child) { c.write(c.inside(".git/modules/x/config"), c.inside(".gitmodules")) }},
	"git_in_directory":   {gain: "code at a status there", try: func(c *child) { c.run("git", "init", "-q", c.inside("a")); c.run("git", "init", "-q", c.inside("new")) }},
	"git_file":           {gain: "code at a status there", try: func(c *child) { c.write(c.inside("a/.git")) }},
	"envrc":              {gain: "code in the user's shell", try: func(c *child) { c.write(c.inside(".envrc")) }},
	"envrc_in_directory": {gain: "code in the user's shell", try: func(c *child) { c.write(c.inside("a/.envrc")) }},
	"editor_tasks": {gain: "code in the editor", try: func(c *child) {
		c.write(c.inside(".vscode/tasks.json"), c.inside(".vscode/settings.json"), c.inside(".idea/workspace.xml"))
	}},
	"editor_tasks_in_directory": {gain: "code in the editor", try: func(c *child) { c.write(c.inside("a/.vscode/tasks.json")) }},
	"editor_moved": {gain: "code in the editor", try: func(c *child) {
		c.err(os.Rename(c.inside(".vscode"), c.inside("v")))
		c.write(c.inside(".vscode/tasks.json"))
	}},
	"workflow": {gain: "code in continuous integration", try: func(c *child) { c.write(c.inside(".github/workflows/x.yml"), c.inside(".gitlab-ci.yml")) }},
	"workflow_moved": {gain: "code in continuous integration", try: func(c *child) {
		c.err(os.Rename(c.inside(".github"), c.inside("g")))
		c.write(c.inside(".github/workflows/x.yml"))
	}},
	"husky":    {gain: "code at the next commit", try: func(c *child) { c.write(c.inside(".husky/pre-commit"), c.inside(".pre-commit-config.yaml")) }},
	"venv":     {gain: "code in Python", try: func(c *child) { c.write(c.inside(".venv/bin/python"), c.inside(".venv/bin/new")) }},
	"node_bin": {gain: "code in npm", try: func(c *child) { c.write(c.inside("node_modules/.bin/tool"), c.inside("node_modules/.bin/new")) }},
	"node_modules_moved": {gain: "code in npm", try: func(c *child) {
		c.err(os.Rename(c.inside("node_modules"), c.inside("n")))
		c.write(c.inside("node_modules/.bin/tool"))
	}},
	"npmrc":                  {gain: "code in npm", try: func(c *child) { c.write(c.inside(".npmrc"), c.inside(".yarnrc.yml")) }},
	"mcp":                    {gain: "a server of tools", try: func(c *child) { c.write(c.inside(".mcp.json")) }},
	"instructions":           {gain: "instructions of a model", try: func(c *child) { c.write(c.inside("AGENTS.md")) }},
	"protected_by_link":      {gain: "code in the user's shell", try: func(c *child) { c.write(c.inside("x")); c.err(os.Symlink("x", c.inside("a/.envrc"))) }},
	"protected_by_hard_link": {gain: "code in the user's shell", try: func(c *child) { c.write(c.inside("x")); c.err(os.Link(c.inside("x"), c.inside("a/.envrc"))) }},
	"link_replaced":          {gain: "a denied file", try: func(c *child) { c.err(os.Rename(c.inside(".env"), c.inside("readable"))); c.read(c.inside("readable")) }},
	"denied_linked":          {gain: "a denied file", try: func(c *child) { c.err(os.Link(c.inside(".env"), c.inside("readable"))); c.read(c.inside("readable")) }},
	"denied_directory_moved": {gain: "a denied file", try: func(c *child) { c.err(os.Rename(c.inside("a"), c.inside("z"))); c.read(c.inside("z/b/.env")) }},
	"denied_by_git": {gain: "a denied file", try: func(c *child) {
		c.run("git", "diff", "--no-index", "/dev/null", ".env")
		c.run("git", "grep", "--no-index", "SECRET", "--", ".env", "a")
	}},
	"denied_written": {gain: "a denied file", try: func(c *child) { c.write(c.inside(".env"), c.inside("a/b/.env")) }},
}

// open opens a file and writes a text.
func (c *child) open(path string, flags int, text string) {
	fd, err := unix.Open(path, flags, 0o644)
	if err != nil {
		c.note(err)
		return
	}
	if text != "" {
		_, err = unix.Write(fd, []byte(text))
		c.err(err)
	}
	unix.Close(fd)
}

func (c *child) err(err error) {
	if err != nil {
		c.note(err)
	}
}

func (c *child) readFD(fd int) {
	if fd < 0 {
		return
	}
	b := make([]byte, 1<<12)
	n, err := unix.Read(fd, b)
	c.err(err)
	if n > 0 {
		fmt.Println(string(b[:n]))
	}
}

// can reports files and directories that can be read as a gain.
func (c *child) can(paths ...string) {
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			c.note(err)
			continue
		}
		c.gained("%s", path)
		f.Close()
	}
}

// system reports files of the kernel that can be opened for writing as a gain. Nothing is written.
func (c *child) system(paths ...string) {
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_WRONLY, 0)
		if err != nil {
			c.note(err)
			continue
		}
		c.gained("%s", path)
		unix.Close(fd)
	}
}

func (c *child) bind(path string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	c.err(err)
	if err == nil {
		c.err(unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	}
}
