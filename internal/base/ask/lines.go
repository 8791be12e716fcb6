package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/muesli/cancelreader"
)

// maxLine bounds a typed answer, in bytes.
const maxLine = 1 << 20

// lines reads a stream line by line. It reads no further than it must, except for
// bytes that arrive in the same read.
type lines struct {
	r    io.Reader
	rest []byte // read, and not yet part of a line
	end  error  // what follows rest
}

// next returns the next line without its end. At the end of the stream it returns
// io.EOF, after a last line that lacks its end. When ctx ends, so does the call,
// provided that the stream is a file that can be polled: a pipe, a terminal, a
// socket.
func (l *lines) next(ctx context.Context) (string, error) {
	for {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			line := string(l.rest[:i])
			l.rest = l.rest[i+1:]
			return clean(line), nil
		}
		if l.end != nil {
			if len(l.rest) > 0 && errors.Is(l.end, io.EOF) {
				line := string(l.rest)
				l.rest = nil
				return clean(line), nil
			}
			return "", l.end
		}
		if len(l.rest) > maxLine {
			return "", fmt.Errorf("the answer is longer than %d bytes", maxLine)
		}
		if err := l.read(ctx); err != nil {
			return "", err
		}
	}
}

// read appends the bytes of one read of the stream to l.rest. Its error is that
// of ctx.
func (l *lines) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := l.r
	if cr, err := cancelreader.NewReader(l.r); err == nil { // regular files fail here, and never wait
		defer cr.Close()
		notified := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(notified)
			cr.Cancel()
		})
		defer func() {
			if !stop() {
				<-notified
			}
		}()
		r = cr
	}
	buf := make([]byte, 4096)
	n, err := r.Read(buf)
	l.rest = append(l.rest, buf[:n]...)
	if errors.Is(err, cancelreader.ErrCanceled) {
		return ctx.Err()
	}
	l.end = err
	return nil
}

func clean(line string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD")
}
