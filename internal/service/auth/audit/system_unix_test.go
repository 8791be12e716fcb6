//go:build unix

package audit

import (
	"log/syslog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk: nothing is kept on a full disk, and nothing counts as kept.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	if n, err := File("/dev/full", 1<<20, 3).Write([]byte("line\n")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestSyslog has a socket of the test be that of the system log, which goes away and comes back.
func TestSyslog(t *testing.T) {
	dir, err := os.MkdirTemp("", "loki") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "log")
	s := &system{dial: func() (*syslog.Writer, error) {
		return syslog.Dial("unixgram", path, syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "loki")
	}}
	if n, err := s.Write([]byte("lost\n")); n != 0 || err == nil {
		t.Errorf("without a socket: %d, %v", n, err)
	}
	for range 2 {
		listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Write([]byte("one\ntwo\n")); n != 8 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		for _, want := range []string{"one", "two"} {
			var buf [512]byte
			n, err := listener.Read(buf[:])
			got := string(buf[:n])
			if err != nil || !strings.HasPrefix(got, "<85>") || !strings.Contains(got, "loki[") || !strings.HasSuffix(got, ": "+want+"\n") {
				t.Errorf("%q, %v", got, err)
			}
		}
		_ = listener.Close()
		_ = os.Remove(path)
		if _, err := s.Write([]byte("lost\n")); err == nil {
			t.Error("no error although the socket has gone")
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
