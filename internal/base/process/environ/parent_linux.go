package environ

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// patience is how long one side waits for the other. Both only copy a few kilobytes.
const patience = 2 * time.Second

// Parent gives what children do not get to those of them that are this same program. It is
// a socket without a file, that answers a process of the same user whose program is the one
// that runs here.
type Parent struct {
	listener *net.UnixListener
	done     sync.WaitGroup
	self     os.FileInfo
	secrets  []byte
}

// Listen starts a Parent that gives entries of an environment. The caller closes it.
func Listen(entries []string) (*Parent, error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@loki-" + rand.Text(), Net: "unix"})
	if err != nil {
		return nil, err
	}
	p := &Parent{listener: l, self: self, secrets: text}
	p.done.Go(p.serve)
	return p, nil
}

// Variable returns the entry for the environment of children.
func (p *Parent) Variable() string { return ParentVariable + "=" + p.listener.Addr().String() }

// Close ends p, and waits for that.
func (p *Parent) Close() error {
	err := p.listener.Close()
	p.done.Wait()
	return err
}

func (p *Parent) serve() {
	for {
		c, err := p.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // too many open files, which passes
			continue
		}
		p.answer(c)
	}
}

// answer gives the secrets to the process at the other end if it may have them.
func (p *Parent) answer(c *net.UnixConn) {
	defer c.Close()
	if p.trusts(c) {
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = c.Write(p.secrets)
	}
}

// trusts reports whether the process at the other end runs this program for this user.
func (p *Parent) trusts(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || failed != nil || int(peer.Uid) != os.Getuid() {
		return false
	}
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", peer.Pid))
	return err == nil && os.SameFile(program, p.self)
}

// Inherit returns what the parent of this process withheld from it, nil if there is no
// parent that says. environ is the environment of this process.
func Inherit(ctx context.Context, environ []string) []string {
	address := Get(environ, ParentVariable)
	if address == "" || address[0] != '@' {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil // it has ended, or is out of reach
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var entries []string
	if json.NewDecoder(c).Decode(&entries) != nil {
		return nil
	}
	return entries
}
