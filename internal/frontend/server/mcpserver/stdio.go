package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLine bounds a message of the client, in bytes.
const maxLine = 16 << 20

// What answers a line that is not JSON, and a message with an id that is none of JSON-RPC.
const (
	parseError     = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a JSON object of at most 16 MiB on each line is expected"}}` + "\n"
	invalidRequest = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"Invalid Request: a request, notification or response of JSON-RPC 2.0 is expected, whose id is a text or a whole number"}}` + "\n"
)

// output is where messages to the client go, one at a time.
type output struct {
	mu    sync.Mutex
	w     io.Writer
	ended func() // is called when it cannot be written
}

// Write implements [io.Writer]. Each call writes whole messages.
func (o *output) Write(p []byte) (int, error) {
	if answersCanceled(p) {
		return len(p), nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(p)
	if err != nil {
		o.ended()
	}
	return n, err
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

// input reads the messages of the client, one in a line, also those of a batch. Lines that are not messages are answered with an error and left out.
type input struct {
	r       io.Reader
	lines   *bufio.Reader
	answers io.Writer
	rest    []byte // of the messages that are being read
	ended   func() // is called when there is no more
}

func newInput(r io.Reader, answers io.Writer, ended func()) *input {
	return &input{r: r, lines: bufio.NewReaderSize(r, 64<<10), answers: answers, ended: ended}
}

// Read implements [io.Reader].
func (in *input) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		line, err := in.line()
		if err != nil {
			in.ended()
			return 0, err
		}
		var refused string
		if in.rest, refused = messages(bytes.TrimSpace(line)); refused != "" {
			if _, err := io.WriteString(in.answers, refused); err != nil {
				return 0, err
			}
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

// messages returns the messages of JSON-RPC in a line, each with the end of a line, and what answers the rest of it.
func messages(line []byte) (good []byte, refused string) {
	all := []json.RawMessage{line}
	switch {
	case len(line) == 0:
		return nil, ""
	case !json.Valid(line):
		return nil, parseError
	case line[0] == '[':
		if _ = json.Unmarshal(line, &all); len(all) == 0 {
			return nil, fmt.Sprintf(invalidRequest, "null")
		}
	}
	for _, one := range all {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(one, &m) // of what is no object, there is no id
		var text string
		var number int64
		id, known := "null", len(m.ID) == 0
		if !known && (json.Unmarshal(m.ID, &text) == nil || json.Unmarshal(m.ID, &number) == nil) {
			id, known = string(m.ID), true
		}
		if _, err := jsonrpc.DecodeMessage(one); err != nil || !known {
			refused += fmt.Sprintf(invalidRequest, id)
			continue
		}
		good = append(append(good, one...), '\n')
	}
	return good, refused
}

// Close implements [io.Closer].
func (in *input) Close() error {
	if c, ok := in.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
