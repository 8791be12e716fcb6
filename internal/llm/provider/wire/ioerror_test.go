package wire

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestUnreachable: what net says about a connection that could not be made, in words that
// name the address.
func TestUnreachable(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 11434}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", err)}
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), "no server listens at 127.0.0.1:11434 (connection refused)"},
		{dial(syscall.ENETUNREACH), "127.0.0.1:11434 cannot be reached from here (network unreachable)"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(syscall.ECONNREFUSED)}, "no server listens at the proxy 127.0.0.1:11434 (connection refused)"},
		{&net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "127.0.0.1:11434 closed the connection (connection reset)"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "api.opena.com", Err: "no such host", Server: "10.0.0.53:53", IsNotFound: true}}, "the host api.opena.com is not known (no such host)"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "api.openai.com", Err: "server misbehaving", IsTemporary: true}}, "the address of the host api.openai.com could not be looked up (server misbehaving)"},
		{dial(syscall.EACCES), ""},
		{io.ErrUnexpectedEOF, ""},
	} {
		if got := unreachable(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
		err := ioError(t.Context(), "asking http://s.test", 0, tt.err)
		if tt.want != "" && (err.Error() != "asking http://s.test: "+tt.want || Refused(err) != strings.Contains(tt.want, "refused")) {
			t.Errorf("error %v", err)
		}
	}
	if err := ioError(t.Context(), "asking", 0, dial(syscall.ECONNREFUSED)); !Refused(err) || UnknownHost(err) {
		t.Errorf("%v is not a refusal", err)
	}
}
