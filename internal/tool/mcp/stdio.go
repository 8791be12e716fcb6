package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
)

const (
	// maxNoise is how much other text a server may print between two messages, in bytes.
	// Some servers, or the package managers that start them, print a greeting.
	maxNoise = 64 << 10
	// maxTail is how much of stderr an error repeats, in bytes.
	maxTail = 2 << 10
	// maxStderr is how much of stderr goes to the log, in bytes.
	maxStderr = 256 << 10
)

// program is a server that is a program: the transport over its standard input and output.
// A message is a line of JSON. It implements sdk.Transport and sdk.Connection; Read is
// called by one goroutine.
type program struct {
	service *process.Service
	lines   *bufio.Reader
	limit   int // bytes of a line
	log     *slog.Logger
	grace   time.Duration

	queue []jsonrpc.Message // of a batch, not yet read
	noise int               // bytes since the last message
	heard atomic.Int64      // bytes that were not messages

	writing chan struct{} // holds one element while a goroutine writes

	down     chan struct{} // closed when nothing more will be read
	downOnce sync.Once

	mu   sync.Mutex
	why  error  // the mistake in the output; nil if the output just ended
	tail []byte // end of stderr
}

// startProgram starts the server. stderr may be nil.
func startProgram(r resolved, o *Options, stderr io.Writer, log *slog.Logger) (*program, error) {
	p := &program{
		limit:   o.MaxMessage,
		log:     log,
		grace:   o.StopGrace,
		writing: make(chan struct{}, 1),
		down:    make(chan struct{}),
	}
	at, err := r.place(o)
	if err != nil {
		return nil, err
	}
	box, err := r.box(o, at)
	if err != nil {
		return nil, err
	}
	printed := 0 // to stderr, in bytes
	service, err := process.Start(process.Command{
		Confinement: box,
		Path:        r.Command,
		Args:        at.args,
		Dir:         at.dir,
		Env:         at.env,
		OnStderr: func(line string) {
			p.remember(line)
			if stderr == nil || printed > maxStderr {
				return
			}
			if printed += len(line) + 1; printed > maxStderr {
				line = fmt.Sprintf("(what it prints after the first %d KiB is not logged)", maxStderr>>10)
			}
			fmt.Fprintf(stderr, "[%s] %s\n", text.Name(r.ID), r.redact(text.Printable(line)))
		},
	})
	if err != nil {
		return nil, err
	}
	p.service = service
	p.lines = bufio.NewReaderSize(service.Stdout(), 32<<10)
	return p, nil
}

// box returns what confines the program of a server, nil if nothing does.
func (r resolved) box(o *Options, at placed) (process.Confinement, error) {
	if d := r.Sandbox; o.Sandbox == nil || d.Level == "" || d.Level == sandbox.Full {
		return nil, nil
	}
	boxes, err := o.Sandbox()
	if err != nil {
		return nil, err
	}
	d, needs := r.Sandbox, sandbox.Needs{Lasting: true}
	switch {
	case at.dir == "" || at.dir == filepath.Dir(at.dir):
	case !at.own && environ.Inside(o.Dir, o.Kept)(at.dir): // a model may have replaced it by a link
		d.Read = append(slices.Clip(d.Read), at.dir)
	default:
		if needs.Read = []string{at.dir}; at.own && d.Level.Covers(sandbox.Write) {
			needs.Write = needs.Read
		}
	}
	return boxes.Box(d, needs), nil
}

// remember keeps the end of stderr.
func (p *program) remember(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail = append(append(p.tail, line...), '\n')
	if over := len(p.tail) - maxTail; over > 0 {
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
}

// lastLine returns the last line of stderr, empty if there is none.
func (p *program) lastLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(p.tail)), "\n")
	return text.OneLine(lines[len(lines)-1], 200)
}

// Connect implements sdk.Transport.
func (p *program) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements sdk.Connection; stdio has no sessions.
func (p *program) SessionID() string { return "" }

// Read implements sdk.Connection. After an error the program has ended or is about to
// end.
func (p *program) Read(context.Context) (jsonrpc.Message, error) {
	for len(p.queue) == 0 {
		line, err := p.readLine()
		if err != nil {
			p.fail(err)
			return nil, err
		}
		if err := p.decode(line); err != nil {
			p.fail(err)
			return nil, err
		}
	}
	msg := p.queue[0]
	p.queue = p.queue[1:]
	return msg, nil
}

// errHuge and errNoise are mistakes of servers after which a connection cannot continue.
var (
	errHuge  = errors.New("it sent a message that is too large")
	errNoise = errors.New("it prints text on its standard output that is not a message of the protocol")
)

func (p *program) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		if len(line)+len(part) > p.limit {
			return nil, fmt.Errorf("%w (more than %d bytes)", errHuge, p.limit)
		}
		switch {
		case err == nil && line == nil:
			return bytes.Clone(part), nil
		case err == nil:
			return append(line, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF // also for other errors of the system
		}
		line = append(line, part...)
	}
}

// decode queues the messages of a line: one, or a list of them as some old servers send.
func (p *program) decode(line []byte) error {
	text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	var parts [][]byte
	if bytes.HasPrefix(text, []byte("[")) {
		parts = batch(text)
	} else if len(text) > 0 {
		parts = [][]byte{text}
	}
	before := len(p.queue)
	for _, part := range parts {
		if msg, err := jsonrpc.DecodeMessage(keep(part, p.log)); err == nil {
			p.queue = append(p.queue, msg)
		}
	}
	if len(p.queue) > before {
		p.noise = 0
		return nil
	}
	p.noise += len(line)
	p.heard.Add(int64(len(text)))
	if p.noise > maxNoise {
		return errNoise
	}
	if len(text) > 0 {
		p.log.Debug("line on standard output that is not a message", "bytes", len(text))
	}
	return nil
}

// noiseNote returns a note about output that is not messages, empty if there was none. A nil program has none.
func (p *program) noiseNote() string {
	if p == nil || p.heard.Load() == 0 {
		return ""
	}
	return fmt.Sprintf("; it printed %d bytes on its standard output that are not messages: each message is one line", p.heard.Load())
}

// batch returns the elements of a JSON array, nil if text is something else.
func batch(text []byte) [][]byte {
	var raw []json.RawMessage
	if json.Unmarshal(text, &raw) != nil {
		return nil
	}
	parts := make([][]byte, len(raw))
	for i, r := range raw {
		parts[i] = r
	}
	return parts
}

// fail ends the program, unless it has ended by itself.
func (p *program) fail(err error) {
	p.mu.Lock()
	if p.why == nil && !errors.Is(err, io.EOF) {
		p.why = err
	}
	p.mu.Unlock()
	p.downOnce.Do(func() { close(p.down) })
	if !errors.Is(err, io.EOF) {
		p.service.Kill()
	}
}

// Write implements sdk.Connection. A server that does not read its input cannot block
// longer than ctx; if it has read a part of the message by then, it is killed.
func (p *program) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case p.writing <- struct{}{}:
	case <-p.down:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.writing }()
	if err := ctx.Err(); err != nil {
		return err
	}
	stdin := p.service.Stdin()
	file, _ := stdin.(*os.File)
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		// Pipes of some systems have no deadlines.
		if file == nil || file.SetWriteDeadline(time.Unix(1, 0)) != nil {
			p.service.Kill()
		}
	})
	n, err := stdin.Write(append(data, '\n'))
	if !stop() {
		<-expired
		if file != nil {
			_ = file.SetWriteDeadline(time.Time{})
		}
	}
	if err == nil {
		return nil
	}
	if n == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	if n > 0 && ctx.Err() != nil {
		p.fail(errors.New("it stopped reading its input"))
	}
	return err
}

// Close implements sdk.Connection. It ends the program, gracefully if it still
// runs.
func (p *program) Close() error {
	p.service.Stop(p.grace)
	p.downOnce.Do(func() { close(p.down) })
	return p.service.Stdout().Close()
}

// kill ends the program at once.
func (p *program) kill() { p.service.Kill() }

// reason returns a text about why the connection ended.
func (p *program) reason() string {
	<-p.service.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "the server ended"
	if p.why != nil {
		text = p.why.Error()
	} else if exit, ok := errors.AsType[*process.ExitError](p.service.Outcome()); ok {
		text = exit.Error()
	}
	text += p.noiseNote()
	if tail := strings.TrimSpace(strings.ToValidUTF8(string(p.tail), "\uFFFD")); tail != "" {
		text += "; it printed: " + tail
	}
	return text
}

// oneAtATime is a Writer whose calls do not overlap.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}
