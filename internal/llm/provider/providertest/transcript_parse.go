package providertest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Transcript is what passed between a client and a server, as the documentation of
// the package describes its form.
type Transcript struct {
	Provider  string // whose API it is, such as "openai"
	API       string // which of its APIs, such as "chat_completions"
	Exchanges []Exchange
}

// Exchange is a request and the response to it.
type Exchange struct {
	Request  RecordedRequest
	Response RecordedResponse
}

// RecordedRequest is what a client has to send.
type RecordedRequest struct {
	Method string
	Target string      // path and query
	Header http.Header // fields that have to be there, among others
	Body   []byte      // compared as JSON; empty for no body
}

// RecordedResponse is what the server answers.
type RecordedResponse struct {
	Status int
	Header http.Header
	Body   []byte
	Chunk  int  // bytes that are sent at once; 0 means all
	Cut    bool // the connection breaks after the body
}

// ParseTranscript reads a transcript. Errors begin with the number of the line.
func ParseTranscript(data []byte) (Transcript, error) {
	var t Transcript
	p := lines{rest: data}
	if err := t.preamble(&p); err != nil {
		return t, p.errorf("%w", err)
	}
	for len(p.rest) > 0 {
		x, err := p.exchange()
		if err != nil {
			return t, p.errorf("%w", err)
		}
		t.Exchanges = append(t.Exchanges, x)
	}
	if len(t.Exchanges) == 0 {
		return t, p.errorf("no exchange: want a line \"> METHOD PATH\"")
	}
	return t, nil
}

// preamble reads up to the first request.
func (t *Transcript) preamble(p *lines) error {
	for len(p.rest) > 0 && !p.at("> ") {
		line := strings.TrimSpace(string(p.next()))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "provider":
			t.Provider = value
		case "api":
			t.API = value
		default:
			return fmt.Errorf("unknown line %q: want provider:, api: or a comment", line)
		}
	}
	if t.Provider == "" || t.API == "" {
		return errors.New("provider: and api: have to be named before the first request")
	}
	return nil
}

// lines is the part of a transcript that is still to be read.
type lines struct {
	rest []byte
	n    int // of the line that was read last
}

func (p *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%d: "+format, append([]any{p.n}, args...)...)
}

func (p *lines) at(prefix string) bool { return bytes.HasPrefix(p.rest, []byte(prefix)) }

// next returns the next line with its end.
func (p *lines) next() []byte {
	p.n++
	i := bytes.IndexByte(p.rest, '\n') + 1
	if i == 0 {
		i = len(p.rest)
	}
	line := p.rest[:i]
	p.rest = p.rest[i:]
	return line
}

// marked reads the lines that begin with mark, without it.
func (p *lines) marked(mark string, take func(i int, line string) error) error {
	for i := 0; p.at(mark); i++ {
		line := strings.TrimSpace(string(p.next()[len(mark):]))
		if err := take(i, line); err != nil {
			return err
		}
	}
	return nil
}

// until reads up to a line that begins with mark.
func (p *lines) until(mark string) []byte {
	var text []byte
	for len(p.rest) > 0 && !p.at(mark) {
		text = append(text, p.next()...)
	}
	return text
}

func (p *lines) exchange() (x Exchange, err error) {
	req, resp := &x.Request, &x.Response
	req.Header, resp.Header = make(http.Header), make(http.Header)
	err = p.marked("> ", func(i int, line string) error {
		var ok bool
		if i == 0 {
			req.Method, req.Target, ok = strings.Cut(line, " ")
			if !ok {
				return fmt.Errorf("%q: want METHOD PATH", line)
			}
			return nil
		}
		return addField(req.Header, line)
	})
	if err != nil {
		return x, err
	}
	req.Body = p.until("< ")
	if !p.at("< ") {
		return x, errors.New("a request without a response: want a line \"< STATUS\"")
	}
	inBase64 := false
	err = p.marked("< ", func(i int, line string) (err error) {
		word, value, _ := strings.Cut(line, " ")
		switch {
		case i == 0:
			resp.Status, err = strconv.Atoi(line)
		case word == "@chunk":
			resp.Chunk, err = strconv.Atoi(value)
		case word == "@base64":
			inBase64 = true
		case word == "@cut":
			resp.Cut = true
		default:
			err = addField(resp.Header, line)
		}
		return err
	})
	if err != nil {
		return x, err
	}
	if resp.Status < 100 || resp.Status > 599 || resp.Chunk < 0 {
		return x, fmt.Errorf("status %d and chunk %d: one is out of range", resp.Status, resp.Chunk)
	}
	resp.Body = p.until("> ")
	if inBase64 {
		text := strings.Join(strings.Fields(string(resp.Body)), "")
		resp.Body, err = base64.StdEncoding.DecodeString(text)
	}
	return x, err
}

func addField(h http.Header, line string) error {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" {
		return fmt.Errorf("%q: want NAME: VALUE", line)
	}
	h.Add(name, strings.TrimSpace(value))
	return nil
}
