//go:build amd64 || arm64

package escapetest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// networkAttempts send something, or reach servers.
var networkAttempts = map[string]attempt{
	"tcp_loopback": {gain: "servers of this machine", network: true, try: func(c *child) { c.dial("tcp", c.TCP[0]) }},
	"tcp_all": {gain: "servers of this machine", network: true, try: func(c *child) {
		for _, at := range c.TCP {
			c.dial("tcp", at)
		}
	}},
	"tcp_unspecified": {gain: "servers of this machine", network: true, try: func(c *child) {
		_, port, _ := net.SplitHostPort(c.TCP[0])
		c.dial("tcp", "0.0.0.0:"+port)
	}},
	"tcp_mapped": {gain: "servers of this machine", network: true, try: func(c *child) {
		at := netip.MustParseAddrPort(c.TCP[0])
		c.connect(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Port: int(at.Port()), Addr: netip.AddrFrom16(at.Addr().As16()).As16()})
	}},
	"tcp_nonblocking": {gain: "servers of this machine", network: true, try: func(c *child) {
		at := netip.MustParseAddrPort(c.TCP[0])
		c.connect(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
		time.Sleep(20 * time.Millisecond)
	}},
	"tcp_fast_open": {gain: "servers of this machine", network: true, try: func(c *child) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		c.err(err)
		if err == nil {
			at := netip.MustParseAddrPort(c.TCP[0])
			c.err(unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
			time.Sleep(20 * time.Millisecond)
		}
	}},
	"tcp_multipath": {gain: "servers of this machine", network: true, try: func(c *child) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
		c.err(err)
		if err == nil {
			at := netip.MustParseAddrPort(c.TCP[0])
			c.err(unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
		}
	}},
	"tcp_by_bash": {gain: "servers of this machine", network: true, try: func(c *child) { c.sh("echo x >/dev/tcp/" + strings.ReplaceAll(c.TCP[0], ":", "/")) }},
	"tcp_by_python": {gain: "servers of this machine", network: true, program: "python3", try: func(c *child) {
		at := netip.MustParseAddrPort(c.TCP[0])
		c.run("python3", "-c", fmt.Sprintf("import socket; socket.create_connection((%q, %d), 2).send(b'x')", at.Addr(), at.Port()))
	}},
	"tcp_by_perl": {gain: "servers of this machine", network: true, program: "perl", try: func(c *child) {
		c.run("perl", "-MIO::Socket::INET", "-e", "print IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 2)->getline", c.TCP[0])
	}},
	"tcp_by_curl": {gain: "servers of this machine", network: true, program: "curl", try: func(c *child) {
		c.run("curl", "-sm2", "--noproxy", "*", "http://"+c.TCP[0])
		c.run("curl", "-sm2", "telnet://"+c.TCP[0])
	}},
	"tcp_listen": {gain: "a server that others reach", network: true, try: func(c *child) {
		l, err := net.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			c.note(err)
			return
		}
		own, err := net.InterfaceAddrs()
		c.err(err)
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.IsGlobalUnicast() {
				c.gained("a server at %s %s", n.IP, l.Addr())
			}
		}
	}},
	"udp": {gain: "packets", network: true, try: func(c *child) {
		for _, at := range c.UDP {
			c.dial("udp", at)
		}
	}},
	"udp_unconnected": {gain: "packets", network: true, try: func(c *child) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		c.err(err)
		if err == nil {
			at := netip.MustParseAddrPort(c.UDP[0])
			c.err(unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
		}
	}},
	"udp_lite": {gain: "packets", network: true, control: "a server of its own kind would have to listen", try: func(c *child) { c.outside(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE) }},
	"dns": {gain: "data within names", network: true, control: "the network of the machine may be closed", try: func(c *child) {
		for _, server := range []string{"127.0.0.53:53", "1.1.1.1:53", "[2606:4700:4700::1111]:53"} {
			conn, err := net.DialTimeout("udp", server, time.Second)
			if err != nil {
				c.note(err)
				continue
			}
			if _, err := conn.Write([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01")); err == nil {
				_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				if n, err := conn.Read(make([]byte, 512)); err == nil {
					c.gained("an answer of %d bytes", n)
				} else if !c.enclosed() {
					c.gained("a question at %s", server)
				}
			} else {
				c.note(err)
			}
		}
	}},
	"dns_by_library": {gain: "data within names", network: true, control: "the network of the machine may be closed", program: "getent", try: func(c *child) { c.sh("timeout 2 getent hosts example.com && echo GAINED an address") }},
	"internet": {gain: "the internet", network: true, control: "the network of the machine may be closed", try: func(c *child) {
		for _, at := range []string{"1.1.1.1:443", "[2606:4700:4700::1111]:443", "93.184.215.14:80"} {
			if conn, err := net.DialTimeout("tcp", at, 500*time.Millisecond); err == nil {
				c.gained("%s", at)
				conn.Close()
			} else if e := err.Error(); strings.Contains(e, "timeout") || strings.Contains(e, "refused") {
				c.gained("a packet: %v", err)
			}
		}
	}},
	"metadata": {gain: "credentials of the machine", network: true, control: "the machine may have none", try: func(c *child) {
		if conn, err := net.DialTimeout("tcp", "169.254.169.254:80", 300*time.Millisecond); err == nil {
			c.gained("metadata")
			conn.Close()
		} else if strings.Contains(err.Error(), "timeout") {
			c.gained("a packet: %v", err)
		}
	}},
	"raw": {gain: "packets", network: true, control: "for root only", try: func(c *child) {
		c.outside(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		c.outside(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	}},
	"ping": {gain: "packets", network: true, control: "where groups may", try: func(c *child) {
		c.outside(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
		c.outside(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6)
	}},
	"packet": {gain: "all packets", network: true, control: "for root only", try: func(c *child) {
		c.outside(unix.AF_PACKET, unix.SOCK_RAW, 0x0300)
		c.outside(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	}},
	"netlink": {gain: "messages of the kernel", network: true, try: func(c *child) {
		for _, protocol := range []int{unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_AUDIT, unix.NETLINK_GENERIC, unix.NETLINK_NETFILTER, unix.NETLINK_XFRM, unix.NETLINK_CONNECTOR, unix.NETLINK_SOCK_DIAG, unix.NETLINK_CRYPTO} {
			c.outside(unix.AF_NETLINK, unix.SOCK_RAW, protocol)
		}
	}},
	"interfaces": {gain: "the network of the machine", network: true, control: "the machine may have none", try: func(c *child) {
		list, err := net.Interfaces()
		c.err(err)
		for _, i := range list {
			if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
				c.gained("interface %s", i.Name)
			}
		}
		c.can("/proc/net/tcp", "/proc/net/arp", "/proc/net/unix", "/proc/self/net/route")
	}},
	"interface_changed": {gain: "the network of the machine", network: true, control: "for root only", try: func(c *child) {
		if os.Geteuid() == 0 || !c.enclosed() {
			c.sh("command -v ip >/dev/null && { ip link add loki0 type dummy || ip route add blackhole 192.0.2.0/24; } && echo GAINED the network; ip link del loki0 2>/dev/null; ip route del blackhole 192.0.2.0/24 2>/dev/null")
		}
	}},
	"vsock": {gain: "the host of the machine", network: true, control: "not in every kernel", try: func(c *child) { c.outside(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	"families": {gain: "parts of the kernel", network: true, control: "not in every kernel", try: func(c *child) {
		for _, family := range []int{unix.AF_AX25, unix.AF_IPX, unix.AF_X25, unix.AF_KEY, unix.AF_RDS, unix.AF_PPPOX, unix.AF_CAN, unix.AF_TIPC, unix.AF_BLUETOOTH, unix.AF_ALG, unix.AF_NFC, unix.AF_KCM, unix.AF_QIPCRTR, unix.AF_SMC, unix.AF_XDP, unix.AF_MCTP, unix.AF_PHONET, unix.AF_IUCV} {
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
				c.outside(family, kind, 0)
			}
		}
	}},
	"sctp": {gain: "servers of this machine", network: true, control: "not in every kernel", try: func(c *child) {
		c.outside(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
		c.outside(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP)
	}},
	"socketpair_family": {gain: "parts of the kernel", network: true, control: "not in every kernel", try: func(c *child) {
		for _, family := range []int{unix.AF_TIPC, unix.AF_INET, unix.AF_SMC} {
			if p, err := unix.Socketpair(family, unix.SOCK_STREAM, 0); err == nil {
				c.gained("family %d: %d", family, p)
			}
		}
	}},
	"accept_by_upgrade": {gain: "a socket that is not asked for", network: true, try: func(c *child) {
		// Connections that come to an own socket would be of an allowed kind, but none can be made.
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		c.err(err)
		for _, path := range c.Unix {
			c.err(unix.Connect(p[0], &unix.SockaddrUnix{Name: path}))
			c.err(unix.Shutdown(p[0], unix.SHUT_RDWR))
			c.err(unix.Connect(p[0], &unix.SockaddrUnix{Name: path}))
		}
	}, control: "the kernel forbids it"},

	"unix_home": {gain: "a service of the user", network: true, try: func(c *child) { c.dial("unix", c.Unix["home"]) }},
	"unix_tmp":  {gain: "a service of the user", network: true, try: func(c *child) { c.dial("unix", c.Unix["tmp"]) }},
	"unix_all": {gain: "services such as Docker, D-Bus and agents for keys", network: true, try: func(c *child) {
		for _, at := range c.Unix {
			c.dial("unix", at)
		}
	}},
	"unix_by_link": {gain: "a service of the user", network: true, try: func(c *child) { c.err(os.Symlink(c.Unix["home"], c.temp("s"))); c.dial("unix", c.temp("s")) }},
	"unix_by_proc": {gain: "a service of the user", network: true, try: func(c *child) {
		fd, err := unix.Open(c.Unix["home"], unix.O_PATH, 0)
		c.err(err)
		c.dial("unix", fmt.Sprint("/proc/self/fd/", fd))
	}},
	"unix_packets": {gain: "a service of the system", network: true, try: func(c *child) {
		for name, at := range c.Unix {
			if strings.HasSuffix(name, "-dgram") {
				c.dial("unixgram", at)
			}
		}
	}},
	"unix_pair": {gain: "a service of the system", network: true, try: func(c *child) {
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW} {
			p, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
			if err != nil {
				c.note(err)
				continue
			}
			for name, at := range c.Unix {
				if strings.HasSuffix(name, "-dgram") {
					c.err(unix.Sendto(p[0], []byte("x"), 0, &unix.SockaddrUnix{Name: at}))
					c.err(unix.Connect(p[1], &unix.SockaddrUnix{Name: at}))
					_, err = unix.Write(p[1], []byte("y"))
					c.err(err)
				}
			}
		}
	}},
	"unix_pair_abstract": {gain: "a service of the system", network: true, try: func(c *child) {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		c.err(err)
		if err == nil {
			c.err(unix.Sendto(p[0], []byte("x"), 0, &unix.SockaddrUnix{Name: "@" + c.Abstract + "d"}))
		}
	}},
	"unix_abstract":         {gain: "a service of the user", network: true, try: func(c *child) { c.dial("unix", "@"+c.Abstract) }},
	"unix_abstract_packets": {gain: "a service of the user", network: true, try: func(c *child) { c.dial("unixgram", "@"+c.Abstract+"d") }},
	"unix_passed": {gain: "a descriptor of another process", network: true, control: "the server passes none", try: func(c *child) {
		for _, at := range c.Unix {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				c.note(err)
				return
			}
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: at}); err != nil {
				c.note(err)
				continue
			}
			c.err(unix.Sendmsg(fd, []byte("x"), unix.UnixRights(0), nil, 0))
		}
	}},
	"known_services": {gain: "services of the system", network: true, control: "the machine may have none", try: func(c *child) {
		runtime := fmt.Sprint("/run/user/", os.Getuid())
		for _, at := range []string{
			"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", runtime + "/podman/podman.sock", runtime + "/docker.sock", "/run/dbus/system_bus_socket", runtime + "/bus", runtime + "/systemd/private",
			"/run/systemd/private", "/run/systemd/journal/stdout", "/run/snapd.socket", "/run/udev/control", "/run/systemd/resolve/io.systemd.Resolve", "/run/systemd/userdb/io.systemd.DynamicUser", "/var/run/nscd/socket", runtime + "/gnupg/S.gpg-agent",
			runtime + "/keyring/ssh", "/tmp/.X11-unix/X0", runtime + "/wayland-0", runtime + "/pipewire-0", "/run/libvirt/libvirt-sock", "/var/run/postgresql/.s.PGSQL.5432", "/run/mysqld/mysqld.sock", "/run/acpid.socket", "/run/avahi-daemon/socket", "/run/cups/cups.sock",
		} {
			if conn, err := net.DialTimeout("unix", at, time.Second); err == nil {
				c.gained("%s", at)
				conn.Close()
			}
		}
		for _, at := range []string{"/dev/log", "/run/systemd/notify", "/run/systemd/journal/socket", "/run/systemd/journal/dev-log"} {
			if conn, err := net.DialTimeout("unixgram", at, time.Second); err == nil {
				c.gained("%s", at)
				conn.Close()
			}
		}
		c.sh("command -v logger >/dev/null && logger loki-escape 2>/dev/null && [ -S /dev/log ] && echo GAINED the log; command -v dbus-send >/dev/null && dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames && echo GAINED D-Bus; command -v docker >/dev/null && timeout 2 docker ps && echo GAINED Docker; ssh-add -l 2>/dev/null && echo GAINED keys")
	}},

	"proxy_other_host": {gain: "a host that is not allowed", network: true, control: "there is no proxy", try: func(c *child) { c.proxied("CONNECT", "other.example:443"); c.proxied("GET", "http://other.example/") }},
	"proxy_loopback": {gain: "servers of this machine", network: true, control: "there is no proxy", try: func(c *child) {
		for _, at := range c.TCP {
			c.proxied("CONNECT", at)
			c.proxied("GET", "http://"+at+"/")
		}
	}},
	"proxy_spelled": {gain: "a host that is not allowed", network: true, control: "there is no proxy", try: func(c *child) {
		_, port, _ := net.SplitHostPort(c.TCP[0])
		for _, host := range []string{"localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "0", "0.0.0.0", "127.0.0.1.", "allowed.example@127.0.0.1", "127.0.0.1#.allowed.example", "127.0.0.1%2e.allowed.example", "ip6-localhost"} {
			c.proxied("CONNECT", host+":"+port)
			c.proxied("GET", "http://"+host+":"+port+"/")
		}
	}},
	"proxy_port": {gain: "a port that is not allowed", network: true, control: "there is no proxy", try: func(c *child) {
		c.proxied("CONNECT", "allowed.example:22")
		c.proxied("GET", "http://allowed.example:8080/")
	}},
	"proxy_host_header": {gain: "a host that is not allowed", network: true, control: "there is no proxy", try: func(c *child) {
		c.proxiedRaw("GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
		c.proxiedRaw("CONNECT other.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n")
		c.proxiedRaw("GET http://allowed.example@" + c.TCP[0] + "/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
	}},
	"proxy_direct": {gain: "a server without the proxy", network: true, control: "there is no proxy", try: func(c *child) {
		if u, err := url.Parse(os.Getenv("HTTP_PROXY")); err == nil && u.Host != "" {
			for _, at := range c.TCP {
				_, port, _ := net.SplitHostPort(at)
				c.dial("tcp", net.JoinHostPort(u.Hostname(), port))
			}
		}
	}},
}

// enclosed reports whether there is no network but the loopback interface.
func (c *child) enclosed() bool {
	list, err := net.Interfaces()
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return false
		}
	}
	return err == nil
}

// outside reports a gain if a socket can be had: the kind is one that no child needs.
func (c *child) outside(family, kind, protocol int) {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		c.note(err)
		return
	}
	defer unix.Close(fd)
	if (family == unix.AF_INET || family == unix.AF_INET6) && kind == unix.SOCK_DGRAM && c.enclosed() {
		return // it leads nowhere
	}
	c.gained("a socket of family %d, kind %d, protocol %d", family, kind, protocol)
}

func (c *child) connect(family, kind int, to unix.Sockaddr) {
	fd, err := unix.Socket(family, kind, 0)
	c.err(err)
	if err == nil {
		c.err(unix.Connect(fd, to))
	}
}

// proxied asks the proxy of the box for an address, and reports a gain if it is had.
func (c *child) proxied(method, at string) {
	host := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	c.proxiedRaw(method + " " + at + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
}

func (c *child) proxiedRaw(text string) {
	u, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil || u.Host == "" {
		c.note(fmt.Errorf("there is no proxy: %v", err))
		return
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		if c.Network {
			c.gained("no answer of the proxy: %v", err)
		}
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, text)
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.note(err)
		return
	}
	fmt.Println(text[:20], reply.Status)
	if reply.StatusCode < 400 || reply.StatusCode >= 500 {
		c.gained("%s: %s", text, reply.Status)
	}
}

// kernelAttempts have parts of the kernel that a command does not need.
var kernelAttempts = map[string]attempt{
	"io_uring": {gain: "calls that no filter sees", try: func(c *child) {
		var p [120]byte
		c.call("io_uring", unix.SYS_IO_URING_SETUP, 2, uintptr(unsafe.Pointer(&p)))
	}},
	"io_uring_calls": {gain: "calls that no filter sees", control: "they need a ring", try: func(c *child) {
		for _, n := range []uintptr{unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
			if _, _, errno := unix.Syscall6(n, ^uintptr(0), 0, 0, 0, 0, 0); errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
				c.gained("call %d: %v", n, errno)
			}
		}
	}},
	"bpf": {gain: "code in the kernel", control: "for root only", try: func(c *child) {
		attr := [16]uint32{0: 2, 1: 4, 2: 8, 3: 1} // a map
		c.call("bpf", unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}},
	"perf": {gain: "what the machine does", try: func(c *child) {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
		c.call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attr)), 0, ^uintptr(0), ^uintptr(0), 0)
	}},
	"userfaultfd": {gain: "races in the kernel", try: func(c *child) { c.call("userfaultfd", unix.SYS_USERFAULTFD, 1) }},
	"keys": {gain: "keys of the user", try: func(c *child) {
		for _, ring := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING, unix.KEY_SPEC_SESSION_KEYRING} {
			if id, err := unix.KeyctlGetKeyringID(ring, false); err == nil {
				c.gained("key ring %d", id)
			} else {
				c.note(err)
			}
		}
		c.can("/proc/keys")
	}},
	"keys_added": {gain: "keys for others", try: func(c *child) {
		id, err := unix.AddKey("user", "loki-escape", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		c.err(err)
		if err == nil {
			c.gained("key %d", id)
		}
	}},
	"keys_requested": {gain: "keys of the user", control: "there is none with this name", try: func(c *child) {
		if _, err := unix.RequestKey("user", "loki-escape", "", unix.KEY_SPEC_PROCESS_KEYRING); err != unix.EPERM && err != unix.ENOSYS {
			c.gained("request_key: %v", err)
		}
	}},
	"modules": {gain: "code in the kernel", control: "it would be the system's", try: func(c *child) {
		if os.Geteuid() == 0 {
			c.refused("finit_module", unix.SYS_FINIT_MODULE, ^uintptr(0), c.pointer(""), 0)
			c.refused("init_module", unix.SYS_INIT_MODULE, 0, 0, c.pointer(""))
			c.refused("delete_module", unix.SYS_DELETE_MODULE, c.pointer("loki-none"), unix.O_NONBLOCK)
		}
	}},
	"kexec": {gain: "another kernel", control: "it would be the system's", try: func(c *child) {
		c.refused("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, 0)
		c.refused("kexec_load", unix.SYS_KEXEC_LOAD, 0, 1<<20, 0, 0)
	}},
	"reboot": {gain: "the machine", control: "it would be the system's", try: func(c *child) {
		c.refused("reboot", unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, 0x12345, 0)
	}},
	"swap": {gain: "the machine", control: "it would be the system's", try: func(c *child) {
		c.refused("swapon", unix.SYS_SWAPON, c.pointer("/none"), 0)
		c.refused("swapoff", unix.SYS_SWAPOFF, c.pointer("/none"))
	}},
	"accounting": {gain: "a log of all commands", control: "it would be the system's", try: func(c *child) { c.refused("acct", unix.SYS_ACCT, c.pointer("/none/none")) }},
	"quota":      {gain: "the disk", control: "it would be the system's", try: func(c *child) { c.refused("quotactl", unix.SYS_QUOTACTL, 0x80000100, 0, 0, 0) }},
	"host_name": {gain: "the name of the machine", control: "it would be the system's", try: func(c *child) {
		c.refused("sethostname", unix.SYS_SETHOSTNAME, c.pointer("x"), 1<<20)
		c.refused("setdomainname", unix.SYS_SETDOMAINNAME, c.pointer("x"), 1<<20)
	}},
	"clock": {gain: "the clock", control: "it would be the system's", try: func(c *child) {
		bad := unix.Timespec{Sec: -1, Nsec: -1}
		c.refused("clock_settime", unix.SYS_CLOCK_SETTIME, 0, uintptr(unsafe.Pointer(&bad)))
		c.refused("settimeofday", unix.SYS_SETTIMEOFDAY, uintptr(unsafe.Pointer(&bad)), 0)
	}},
	"terminal_hung": {gain: "the user's terminal", control: "it would be the system's", try: func(c *child) {
		if os.Getenv("LOKI_ESCAPE_HANGUP") != "" { // on a terminal of its own
			c.refused("vhangup", unix.SYS_VHANGUP)
		}
	}},
	"personality": {gain: "a process without random addresses", alone: true, try: func(c *child) { c.call("personality", unix.SYS_PERSONALITY, 0x0040000) }},
	"handles": {gain: "a secret", control: "for root only", try: func(c *child) {
		c.refused("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), c.pointer("\x08\x01"), 0)
	}},
	"later_calls": {gain: "calls that came after this program", control: "they do nothing yet", try: func(c *child) {
		for n := uintptr(480); n < 520; n++ {
			if _, _, errno := unix.Syscall6(n, 0, 0, 0, 0, 0, 0); errno != unix.ENOSYS {
				c.gained("call %d: %v", n, errno)
			}
		}
	}},
	"freeze": {gain: "all files", control: "it would be the system's", try: func(c *child) {
		// A device that is no file system says ENOTTY; those that freeze say so by another error only to those who may.
		if os.Geteuid() == 0 && c.effective(unix.CAP_SYS_ADMIN) {
			c.gained("the right to freeze file systems")
		}
	}},
}

// refused reports a gain if a call is not refused at once: its arguments are wrong, so that it does nothing even then.
func (c *child) refused(what string, number uintptr, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != unix.EPERM && errno != unix.ENOSYS && errno != unix.EACCES {
		c.gained("%s: %v", what, errno)
		return
	}
	c.note(fmt.Errorf("%s: %w", what, errno))
}
