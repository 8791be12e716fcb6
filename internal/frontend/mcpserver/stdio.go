package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// maxLine bounds a message of the client, in bytes.
const maxLine = 16 << 20

// parseError answers what is no message of JSON-RPC.
const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a JSON object of at most 16 MiB on each line is expected"}}` + "\n"

// output is where messages to the client go, one at a time.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements [io.Writer]. Each call writes whole messages.
func (o *output) Write(p []byte) (int, error) {
	if answersCanceled(p) {
		return len(p), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// codeCanceled is the code of the answer to a request that its client has canceled.
const codeCanceled = -32800

// answersCanceled reports whether a message is such an answer, which the protocol does not want to be sent.
func answersCanceled(message []byte) bool {
	var m struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	early := context.Canceled.Error() // as the SDK answers one that it has not handed on yet
	return bytes.Contains(message, []byte(`"error"`)) && json.Unmarshal(message, &m) == nil && (m.Error.Code == codeCanceled || m.Error.Code == 0 && m.Error.Message == early)
}

// Close implements [io.Closer]. It does nothing.
func (*output) Close() error { return nil }

// input is what the client writes, without lines that are no messages: these are answered, and the rest goes on.
type input struct {
	r       io.Reader
	lines   *bufio.Reader
	answers io.Writer
	rest    []byte // of the line that is being read
	ended   func() // is called once when there is no more
}

func newInput(r io.Reader, answers io.Writer, ended func()) *input {
	return &input{r: r, lines: bufio.NewReaderSize(r, 64<<10), answers: answers, ended: ended}
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		line, err := in.line()
		if err != nil {
			if in.ended != nil {
				in.ended()
				in.ended = nil
			}
			return 0, err
		}
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case !isMessage(line):
			if _, err := io.WriteString(in.answers, parseError); err != nil {
				return 0, err
			}
		default:
			in.rest = append(line, '\n')
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// line returns the next line. One that is too long is as good as none that is a message.
func (in *input) line() (line []byte, err error) {
	for long := false; ; {
		part, err := in.lines.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = []byte("(too long)")
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(bytes.TrimSpace(line)) > 0: // the last line has no end
			return line, nil
		default:
			return line, err
		}
	}
}

// isMessage reports whether a line is an object of JSON-RPC, or a batch of several, whose ids are texts or whole numbers.
func isMessage(line []byte) bool {
	type message struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
	}
	var one message
	var all []message
	if line[0] == '[' {
		if json.Unmarshal(line, &all) != nil || len(all) == 0 {
			return false
		}
	} else if json.Unmarshal(line, &one) != nil || line[0] != '{' {
		return false
	} else {
		all = []message{one}
	}
	for _, m := range all {
		var text string
		var number int64
		if m.Version != "2.0" || len(m.ID) > 0 && json.Unmarshal(m.ID, &text) != nil && json.Unmarshal(m.ID, &number) != nil {
			return false
		}
	}
	return true
}

// Close implements [io.Closer].
func (in *input) Close() error {
	if c, ok := in.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
