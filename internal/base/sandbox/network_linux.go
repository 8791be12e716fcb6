//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"loki/internal/base/sandbox/proxy"
	"loki/internal/base/sandbox/shim"
)

// proxyPort is where the proxy listens in the network of a child, which has nothing else.
const proxyPort = 60080

// handFD is the descriptor of the shim over which it hands the listener of the proxy.
const handFD = shim.FirstFD + 1

// network is the proxy of a box.
type network struct {
	hand  *os.File // our end of what the listener comes over
	proxy *proxy.Proxy
}

// newNetwork makes what the listener is handed over with, and returns the end of the shim.
func newNetwork(hosts []string, getenv func(string) string) (*network, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	n := &network{hand: os.NewFile(uintptr(ends[0]), "listener of the proxy"), proxy: proxy.New(proxy.Options{Hosts: hosts, Getenv: getenv})}
	return n, os.NewFile(uintptr(ends[1]), "listener of the proxy"), nil
}

// serve takes the listener, which the shim has handed over, and serves the child.
func (n *network) serve() error {
	var text [1]byte
	control := make([]byte, unix.CmsgSpace(4))
	_, size, _, _, err := unix.Recvmsg(int(n.hand.Fd()), text[:], control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return errors.Join(err, errors.New("no listener came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return errors.Join(err, errors.New("no listener came"))
	}
	file := os.NewFile(uintptr(fds[0]), "listener of the proxy")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	n.proxy.Serve(listener)
	return nil
}

func (n *network) close() {
	n.hand.Close()
	n.proxy.Close()
}

// listen plans the listener of the proxy and its way to the parent.
func (p *plan) listen() {
	listener := shim.Result(3)
	p.Add(shim.Call{
		Label: "open the socket of the proxy", Number: unix.SYS_SOCKET, Result: listener,
		Args: []shim.Arg{shim.Number(unix.AF_INET), shim.Number(unix.SOCK_STREAM | unix.SOCK_CLOEXEC), shim.Number(0)},
	})
	address := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	address = binary.BigEndian.AppendUint16(address, proxyPort)
	address = append(address, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
	p.call("bind the socket of the proxy", unix.SYS_BIND, listener.Arg(), p.Bytes(address), shim.Number(uint64(len(address))))
	p.call("listen for the proxy", unix.SYS_LISTEN, listener.Arg(), shim.Number(unix.SOMAXCONN))

	control := make([]byte, unix.CmsgSpace(4)) // struct cmsghdr and a descriptor
	binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(4)))
	binary.NativeEndian.PutUint32(control[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(control[12:], unix.SCM_RIGHTS)
	rights := p.Bytes(control)
	p.Store(rights, 16, 4, listener.Arg())
	part := p.Bytes(binary.NativeEndian.AppendUint64(make([]byte, 8), 1)) // struct iovec of one byte
	p.Store(part, 0, 8, p.Bytes([]byte{0}))
	message := make([]byte, 56) // struct msghdr
	binary.NativeEndian.PutUint64(message[24:], 1)
	binary.NativeEndian.PutUint64(message[40:], uint64(len(control)))
	head := p.Bytes(message)
	p.Store(head, 16, 8, part)
	p.Store(head, 32, 8, rights)
	p.call("hand over the listener of the proxy", unix.SYS_SENDMSG, shim.Number(handFD), head, shim.Number(0))
	p.call("close the socket of the proxy", unix.SYS_CLOSE, listener.Arg())
}
