// Package postgrestest has databases of a real PostgreSQL server for tests: that of this machine, as Debian
// installs it. Tests skip where there is none.
package postgrestest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"loki/internal/base/fault/retry"
)

// Database returns the address of an empty database of its own for the test, on a server that the tests of
// the process share. The server ends with the process.
func Database(t testing.TB) string {
	t.Helper()
	s, err := shared()
	s.require(t, err)
	return s.Database(t)
}

// shared starts the server that all tests of the process use.
var shared = sync.OnceValues(start)

// Server is a PostgreSQL server. Its methods are called by one goroutine at a time, but Database.
type Server struct {
	programs  string // directory
	dir, port string
	databases atomic.Int64

	watch io.WriteCloser // ends the server when it is closed, also by the end of the process; nil while the server is down
	ended chan error
}

// Start starts a server of its own for a test that stops or restarts it.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	s.require(t, err)
	t.Cleanup(func() {
		s.Stop(t)
		os.RemoveAll(s.dir)
	})
	return s
}

// require ends the test unless the server was started.
func (s *Server) require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		t.Skip("PostgreSQL is not installed, or -short is set")
	}
}

// start makes a server and starts it. It returns nil if that cannot be done here.
func start() (*Server, error) {
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(programs) == 0 || testing.Short() {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "loki-postgres-") // not in a directory that the server's user cannot enter
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{programs: slices.Max(programs), dir: dir, port: port}
	if os.Getuid() == 0 { // as whom the server refuses to run
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	init := s.command(filepath.Join(s.programs, "initdb"), "-D", s.data(), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.start()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command returns a command that is executed as a user the server agrees to.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	if os.Getuid() == 0 {
		c = exec.Command("setpriv", append([]string{"--reuid=postgres", "--regid=postgres", "--clear-groups", program}, args...)...)
	}
	c.Dir = s.dir
	return c
}

// watcher runs the server until its standard input ends, and removes the directory if the process that
// held that is gone.
const watcher = `
"$1/postgres" -D data -p "$2" -k "$PWD" -c fsync=off -c listen_addresses=127.0.0.1 >>log 2>&1 </dev/null &
read -r how
kill -QUIT $!
wait $!
[ "$how" = stop ] || rm -rf "$PWD"
`

func (s *Server) start() error {
	c := s.command("/bin/sh", "-c", watcher, "sh", s.programs, s.port)
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	s.watch, s.ended = in, make(chan error, 1)
	go func() { s.ended <- c.Wait() }()
	return s.wait()
}

// wait returns once the server takes connections.
func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.address("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if retry.Sleep(ctx, 20*time.Millisecond) != nil {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server does not start: %w: %s", err, log)
		}
	}
}

func (s *Server) address(database string) string {
	return "postgres://postgres:secret@127.0.0.1:" + s.port + "/" + database + "?sslmode=disable"
}

// Database returns the address of an empty database of its own for the test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.address("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.address(name)
}

// Stop stops the server at once, as a crash does. A server that is down stays so.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.watch == nil {
		return
	}
	_, _ = io.WriteString(s.watch, "stop\n")
	_ = s.watch.Close()
	<-s.ended
	s.watch = nil
}

// Restart stops the server, if it runs, and starts it. All connections to it are lost.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
