package wire

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"loki/internal/llm/provider"
)

// Failure returns the error of a call in the form that [provider.Chat] promises: a
// [*provider.Error] without secrets, or one that wraps ctx's error. err is whatever
// an SDK, net/http or the reading of a reply ended with, doing what was being done,
// such as "asking claude"; it stands before messages that do not say themselves
// where they come from. Failure of nil is nil.
func Failure(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return callOf(ctx).clean(e)
	}
	return callOf(ctx).cleanError(ioError(ctx, doing, 0, err))
}

// cleanError is [call.clean] for errors that may be another.
func (c *call) cleanError(err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return c.clean(e)
	}
	return err
}

// ioError says what a failure to connect, send or read means. ctx is the caller's
// context; connect is how long a connection may take to be made, 0 if that is not
// known.
//
// The causes of time-outs are left out of the chain: they pass for the caller's
// own deadline, and cancellation for the user's.
func ioError(ctx context.Context, doing string, connect time.Duration, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	kind, said := provider.Transient, ""
	cause := withoutURL(err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		said, cause = ": connection closed before the reply was complete", nil
	case isNet && netErr.Timeout() && connect > 0:
		said, cause = fmt.Sprintf(": no connection within %v", connect), nil
	case isNet && netErr.Timeout():
		said, cause = ": no answer in time", nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		said, cause = ": the request was cut off", nil
	case unreachable(cause) != "":
		cause = &explained{unreachable(cause), cause}
	case isTLSMismatch(err):
		kind = provider.Invalid
	case isJSONError(err):
		kind = provider.BadReply
	}
	return &provider.Error{Kind: kind, Msg: doing + said, Err: cause}
}

// explained is an error in other words.
type explained struct {
	words string
	err   error
}

func (e *explained) Error() string { return e.words }
func (e *explained) Unwrap() error { return e.err }

// unreachable returns what it means that no connection could be made, or that it was reset,
// and "" for other failures.
func unreachable(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return "the host " + e.Name + " is not known (no such host)"
		}
		return "the address of the host " + e.Name + " could not be looked up (" + e.Err + ")"
	}
	outer, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return ""
	}
	where := "the server"
	for e, ok := outer, true; ok; e, ok = errors.AsType[*net.OpError](e.Err) {
		if e.Addr != nil {
			where = e.Addr.String()
		}
	}
	if outer.Op == "proxyconnect" {
		where = "the proxy " + where
	}
	is := func(errs ...syscall.Errno) bool {
		for _, e := range errs {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	// The large numbers are those of Windows.
	switch {
	case is(syscall.ECONNREFUSED, 10061):
		return "no server listens at " + where + " (connection refused)"
	case is(syscall.ENETUNREACH, syscall.EHOSTUNREACH, 10051, 10065):
		return where + " cannot be reached from here (network unreachable)"
	case is(syscall.ECONNRESET, syscall.EPIPE, 10054):
		return where + " closed the connection (connection reset)"
	}
	return ""
}

// Refused reports whether a call failed because no server listens where it was sent.
func Refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.Errno(10061))
}

// UnknownHost reports whether a call failed because the host does not exist.
func UnknownHost(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// withoutURL returns err without the URL of the request, which may hold a key.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(e.RecordHeader[:]) == "HTTP/" {
		return http.ErrSchemeMismatch // as http.Client says it
	}
	return err
}

// isTLSMismatch reports failures of a handshake that will fail again.
func isTLSMismatch(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

// isJSONError reports replies that are not the JSON that their reader expects.
func isJSONError(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, typ := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || typ
}
