//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"loki/internal/base/process/sandbox/proxy"
	"loki/internal/base/process/sandbox/shim"
)

// proxyPort is where the proxy listens in the network of a child, which has nothing else.
const proxyPort = 60080

// handFD is the descriptor of the shim over which it hands sockets of its network.
const handFD = shim.FirstFD + 1

// mostDialed is how many connections to a child there are at a time, by IPv4 and by IPv6 each.
const mostDialed = 32

// loopbacks are where a child may listen: some servers do so only by IPv6. A socket that was connected by one protocol cannot be by the other.
var loopbacks = [...]struct {
	family int
	at     func(port int) unix.Sockaddr
}{
	{unix.AF_INET, func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}} }},
	{unix.AF_INET6, func(port int) unix.Sockaddr { return &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}} }},
}

// network is what leads in and out of the network of a box: a proxy, ports that lead to other programs, and sockets by which this program
// connects to the child. A socket belongs to the network in which it was made, so the shim makes them all.
type network struct {
	hand      *os.File     // our end of what the sockets come over
	proxy     *proxy.Proxy // nil below level network
	ports     []int        // that lead to other programs
	reach     map[int]Dialer
	listeners []net.Listener
	relays    sync.WaitGroup

	dialed []int                    // families of the sockets to connect with
	free   [len(loopbacks)]chan int // those of them that are not in use, nil for none; in the order of loopbacks

	mu    sync.Mutex
	ended bool // sockets that are not in use anymore are closed; guarded by mu
}

// networked reports whether the child has a network of its own.
func (b *Box) networked() bool {
	return b.declared.Level.Covers(Write) || len(b.needs.Reach) > 0
}

// newNetwork makes what the sockets are handed over with, and returns the end of the shim.
func (b *Box) newNetwork() (*network, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	n := &network{hand: os.NewFile(uintptr(ends[0]), "sockets of the sandbox"), reach: b.needs.Reach, ports: slices.Sorted(maps.Keys(b.needs.Reach))}
	if b.declared.Level == Network {
		n.ports = slices.DeleteFunc(n.ports, func(port int) bool { return port == proxyPort })
		n.proxy = proxy.New(proxy.Options{Hosts: b.hosts(), Getenv: b.s.o.Getenv})
	}
	if b.needs.Dialed {
		for i, l := range loopbacks {
			if _, err := os.Stat("/proc/net/if_inet6"); err != nil && l.family == unix.AF_INET6 {
				continue
			}
			n.dialed, n.free[i] = append(n.dialed, slices.Repeat([]int{l.family}, mostDialed)...), make(chan int, mostDialed)
		}
	}
	return n, os.NewFile(uintptr(ends[1]), "sockets of the sandbox"), nil
}

// listenPorts returns the ports on which the shim listens.
func (n *network) listenPorts() []int {
	if n.proxy != nil {
		return append([]int{proxyPort}, n.ports...)
	}
	return n.ports
}

// serve takes the sockets, which the shim has handed over, and serves the child.
func (n *network) serve() error {
	ports := n.listenPorts()
	var text [1]byte
	control := make([]byte, unix.CmsgSpace(4*(len(ports)+len(n.dialed))))
	_, size, _, _, err := unix.Recvmsg(int(n.hand.Fd()), text[:], control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return errors.Join(err, errors.New("no sockets came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != len(ports)+len(n.dialed) {
		return errors.Join(err, errors.New("not all sockets came"))
	}
	for i, fd := range fds[len(ports):] {
		n.free[i/mostDialed] <- fd
	}
	for i, port := range ports {
		file := os.NewFile(uintptr(fds[i]), "listener of the sandbox")
		listener, listenErr := net.FileListener(file)
		file.Close()
		switch {
		case listenErr != nil:
			err = errors.Join(err, listenErr)
		case i == 0 && n.proxy != nil:
			n.proxy.Serve(listener)
		default:
			n.listeners = append(n.listeners, listener)
			n.relays.Go(func() { Relay(listener, n.reach[port]) }) // ends with the listener
		}
	}
	return err
}

func (n *network) close() {
	n.hand.Close()
	if n.proxy != nil {
		n.proxy.Close()
	}
	for _, l := range n.listeners {
		l.Close()
	}
	n.relays.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	for _, free := range n.free {
		for left := true; left; {
			select {
			case fd := <-free:
				unix.Close(fd)
			default:
				left = false
			}
		}
	}
}

// dial connects to a port of the child.
func (b *Box) dial(ctx context.Context, port int) (net.Conn, error) {
	n, err := b.hold.network, errNotDialed
	if n == nil {
		return nil, err
	}
	for i, free := range n.free {
		if free == nil {
			continue
		}
		fd, takeErr := n.take(ctx, free)
		if takeErr != nil {
			return nil, takeErr
		}
		var conn *net.TCPConn
		if conn, err = connect(fd, loopbacks[i].at(port)); err == nil {
			return &dialed{TCPConn: conn, back: func() { n.putBack(fd, free) }}, nil
		}
		n.putBack(fd, free)
	}
	return nil, err
}

// take returns a socket that is not in use.
func (n *network) take(ctx context.Context, free chan int) (int, error) {
	n.mu.Lock()
	ended := n.ended
	n.mu.Unlock()
	if ended {
		return 0, net.ErrClosed
	}
	select {
	case fd := <-free:
		return fd, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// connect connects a socket.
func connect(fd int, to unix.Sockaddr) (*net.TCPConn, error) {
	if err := unix.Connect(fd, to); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(again), "connection into the sandbox")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// putBack makes a socket free for another connection.
func (n *network) putBack(fd int, free chan int) {
	var none unix.RawSockaddrAny // of family AF_UNSPEC, which ends a connection and leaves the socket
	_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
	_ = unix.SetNonblock(fd, false)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || errno != 0 {
		unix.Close(fd)
		return
	}
	free <- fd // it has room for all
}

// dialed is a connection whose socket is used again.
type dialed struct {
	*net.TCPConn
	back func()
	once sync.Once
}

// Close implements [net.Conn].
func (d *dialed) Close() error {
	err := d.TCPConn.Close()
	d.once.Do(d.back)
	return err
}

// sockets plans the sockets of a network, and their way to the parent.
func (p *plan) sockets(n *network) {
	const socket shim.Result = 3
	ports := n.listenPorts()
	count := len(ports) + len(n.dialed)
	control := make([]byte, unix.CmsgSpace(4*count)) // struct cmsghdr and descriptors
	binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(4*count)))
	binary.NativeEndian.PutUint32(control[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(control[12:], unix.SCM_RIGHTS)
	rights := p.Bytes(control)
	for i := range count {
		family := unix.AF_INET
		if i >= len(ports) {
			family = n.dialed[i-len(ports)]
		}
		p.Add(shim.Call{
			Label: "open a socket of the network", Number: unix.SYS_SOCKET, Result: socket,
			Args: []shim.Arg{shim.Number(uint64(family)), shim.Number(unix.SOCK_STREAM | unix.SOCK_CLOEXEC), shim.Number(0)},
		})
		p.Store(rights, 16+4*i, 4, socket.Arg())
		if i >= len(ports) {
			continue
		}
		address := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
		address = binary.BigEndian.AppendUint16(address, uint16(ports[i]))
		address = append(address, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
		p.call("bind a socket of the network", unix.SYS_BIND, socket.Arg(), p.Bytes(address), shim.Number(uint64(len(address))))
		p.call("listen in the network", unix.SYS_LISTEN, socket.Arg(), shim.Number(unix.SOMAXCONN))
	}
	part := p.Bytes(binary.NativeEndian.AppendUint64(make([]byte, 8), 1)) // struct iovec of one byte
	p.Store(part, 0, 8, p.Bytes([]byte{0}))
	message := make([]byte, 56) // struct msghdr
	binary.NativeEndian.PutUint64(message[24:], 1)
	binary.NativeEndian.PutUint64(message[40:], uint64(len(control)))
	head := p.Bytes(message)
	p.Store(head, 16, 8, part)
	p.Store(head, 32, 8, rights)
	p.call("hand over the sockets of the network", unix.SYS_SENDMSG, shim.Number(handFD), head, shim.Number(0))
}
