package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"

	"loki/internal/base/process/sandbox/proxy"
)

// sandboxExec is the program of the system that executes another one under a profile of Seatbelt. A profile that it does
// not take, or cannot apply, is an error of it: the other program does not run.
const sandboxExec = "/usr/bin/sandbox-exec"

// hold is what Prepare took.
type hold struct {
	temp  *temp
	proxy *proxy.Proxy // at level network
}

// trial finds out whether sandboxExec takes a profile as boxes have it. ok is false on a system without it.
var trial = sync.OnceValues(func() (ok bool, err error) {
	if _, err := os.Stat(sandboxExec); err != nil {
		return false, nil
	}
	places := &limits{level: Read}
	for _, p := range systemPlaces["darwin"] {
		places.read = append(places.read, resolve(p.path))
	}
	cmd := exec.Command(sandboxExec, "-p", seatbelt(places, resolve(os.TempDir()), nil, nil, 0), "/usr/bin/true")
	if out, err := cmd.CombinedOutput(); err != nil {
		return true, fmt.Errorf("it cannot be set up (%s: %w: %s), and no program runs without it; sandbox: {enabled: false} in config.yaml switches it off", sandboxExec, err, bytes.TrimSpace(out))
	}
	return true, nil
})

func kernelSupport() Support {
	switch ok, err := trial(); {
	case !ok:
		return Support{Missing: "this system has no " + sandboxExec}
	case err != nil:
		return Support{Files: true, How: "Seatbelt", Missing: err.Error()}
	}
	return Support{Files: true, How: "Seatbelt", Missing: "names, sizes and times of all files can be seen, and a program that leaves its session outlives its call"}
}

// prepare makes cmd one of sandboxExec, which executes what cmd was.
func (b *Box) prepare(cmd *exec.Cmd) (waits bool, err error) {
	if _, err := trial(); err != nil {
		return false, err
	}
	h := &b.hold
	if b.dir = cmd.Dir; b.dir == "" {
		if b.dir, err = os.Getwd(); err != nil {
			return false, err
		}
	}
	if h.temp, err = newTemp(); err != nil {
		return false, fmt.Errorf("temporary directory: %w", err)
	}
	held, err := b.begin()
	if err != nil {
		return false, err
	}
	b.held = held
	port, later := 0, laterPlaces
	if held.level == Network {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return false, fmt.Errorf("listen for the proxy: %w", err)
		}
		h.proxy = proxy.New(proxy.Options{Hosts: b.hosts(), Getenv: b.s.o.Getenv})
		h.proxy.Serve(listener)
		port = listener.Addr().(*net.TCPAddr).Port
		later = slices.DeleteFunc(slices.Clone(later), func(p place) bool { return slices.Contains(installed, p.path) })
	}
	args := []string{sandboxExec, "-p", seatbelt(&held, h.temp.path, later, b.closedPatterns(), port), cmd.Path}
	cmd.Args = append(args, cmd.Args[min(1, len(cmd.Args)):]...)
	cmd.Path, cmd.Env = sandboxExec, b.environ(cmd.Env, h.temp.path, port)
	return false, nil
}

func (b *Box) release() error { return nil }

func (b *Box) end() {
	h := &b.hold
	if h.proxy != nil {
		h.proxy.Close()
		b.connections = h.proxy.RefusedHosts()
	}
	if h.temp != nil {
		h.temp.remove()
	}
	if b.found != nil {
		b.finish()
	}
}

func (b *Box) dial(context.Context, int) (net.Conn, error) { return nil, errNotDialed }
