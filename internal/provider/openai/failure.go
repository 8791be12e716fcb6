package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"net/http"
	"strconv"
	"strings"

	"loki/internal/provider"
)

// failure is what an error body says.
type failure struct {
	msg    string
	typ    string // error.type, error.status or the like
	code   string // error.code, also when it is a number
	status int    // an HTTP status inside the body, 0 if there is none
}

// statusError returns the error for a response with another status than 2xx.
func statusError(status int, header http.Header, body []byte) error {
	f, ok := parseFailure(body)
	if !ok {
		f.msg = describeBody(body)
		if f.msg == "" {
			f.msg = cmp.Or(strings.ToLower(http.StatusText(status)), "request failed")
		}
	}
	if status >= 300 && status < 400 {
		f.msg = "the server redirects to " + redirectTarget(header) + ": set api_base to the URL that answers"
	}
	return f.asError(status, header)
}

// asError returns the failure as the error of a response with status and header.
// Status 0 and no header stand for a failure within a reply.
func (f failure) asError(status int, header http.Header) error {
	e := &provider.Error{Kind: classify(status, f), Status: status, Msg: f.msg}
	if provider.Retryable(e) {
		e.RetryAfter = retryAfter(header, f.msg)
	}
	return e
}

func redirectTarget(h http.Header) string {
	u, err := (&http.Response{Header: h}).Location()
	if err != nil {
		return "an unknown place"
	}
	return publicURL(u)
}

// failureWithin returns the error that the body of a successful response, or a
// chunk of it, holds instead of a reply; nil if it is of no known form.
func failureWithin(doc []byte) error {
	f, ok := parseFailure(doc)
	if !ok {
		return nil
	}
	return f.asError(f.status, nil)
}

// notAReply returns the error that a body holds which lacks what was asked for, or
// one that shows the body.
func notAReply(what string, body []byte) error {
	if err := failureWithin(body); err != nil {
		return err
	}
	return badReply("the reply holds no "+what, body)
}

// failureSigns are the members that tell an object that reports a failure from one
// that is a reply; a reply may well have members called message or detail.
type failureSigns struct {
	Object looseString
	Error  json.RawMessage
	Errors json.RawMessage
}

func (s failureSigns) found() bool {
	return present(s.Error) || present(s.Errors) || s.Object == "error"
}

// present reports whether a member says anything: some servers send an empty one
// with every chunk.
func present(v json.RawMessage) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", `""`, "{}", "[]", "false":
		return false
	}
	return true
}

// parseFailure reads the many forms of error bodies. The first form that fits
// counts.
func parseFailure(body []byte) (failure, bool) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return failure{}, false
		}
		body = list[0]
	}
	var doc struct {
		Error     json.RawMessage
		Errors    []errorObject
		Detail    looseText
		Message   looseText
		Type      looseString
		Code      looseString
		Status    looseString
		ErrorType looseString `json:"error_type"`
		BaseResp  struct {    // MiniMax
			StatusCode looseString `json:"status_code"`
			StatusMsg  looseText   `json:"status_msg"`
		} `json:"base_resp"`
	}
	if tolerant(json.Unmarshal(body, &doc)) != nil {
		return failure{}, false
	}
	top := failure{typ: cmp.Or(string(doc.Type), string(doc.ErrorType)), code: string(doc.Code), status: httpStatus(string(doc.Code))}
	if present(doc.Error) {
		if f, ok := parseErrorMember(doc.Error, top); ok {
			return f, true
		}
	}
	if len(doc.Errors) > 0 && doc.Errors[0].Message != "" {
		e := doc.Errors[0]
		return failure{msg: suffixed(string(e.Message), "status", string(e.Code)), code: string(e.Code), status: httpStatus(string(e.Code))}, true
	}
	if r := doc.BaseResp; r.StatusMsg != "" && r.StatusCode != "0" {
		return failure{msg: suffixed(string(r.StatusMsg), "code", string(r.StatusCode)), code: string(r.StatusCode)}, true
	}
	top.msg = cmp.Or(string(doc.Detail), string(doc.Message))
	if doc.Detail != "" {
		top.msg = suffixed(top.msg, "status", string(doc.Status))
		top.status = httpStatus(string(doc.Status))
	}
	return top, top.msg != ""
}

type errorObject struct {
	Message  looseText
	Type     looseString
	Code     looseString
	Status   looseString
	Metadata struct{ Raw looseText }    // OpenRouter: what the provider behind it said
	Inner    struct{ Code looseString } `json:"innererror"`
}

// parseErrorMember reads the value of "error": an object, or a text with type and
// code beside it.
func parseErrorMember(v json.RawMessage, top failure) (failure, bool) {
	var text looseText
	if json.Unmarshal(v, &text) == nil && text != "" && v[0] == '"' {
		top.msg = string(text)
		return top, true
	}
	var e errorObject
	if tolerant(json.Unmarshal(v, &e)) != nil || e.Message == "" {
		return failure{}, false
	}
	msg := string(e.Message)
	if raw := shorten(strings.TrimSpace(string(e.Metadata.Raw)), 500); raw != "" && raw != msg {
		msg += ": " + raw
	}
	code := string(e.Code)
	switch {
	case e.Type != "":
		msg = suffixed(msg, "type", string(e.Type))
	case code != "" && httpStatus(code) == 0:
		msg = suffixed(msg, "code", code)
	case e.Status != "":
		msg = suffixed(msg, "status", string(e.Status))
	}
	if e.Inner.Code != "" {
		code += " " + string(e.Inner.Code)
	}
	return failure{
		msg: shorten(msg, maxMessage), code: code, status: httpStatus(string(e.Code)),
		typ: cmp.Or(string(e.Type), string(e.Status)),
	}, true
}

func suffixed(msg, label, value string) string {
	if value == "" {
		return msg
	}
	return msg + " (" + label + ": " + value + ")"
}

// httpStatus returns code as an HTTP error status, 0 if it is none.
func httpStatus(code string) int {
	n, err := strconv.Atoi(code)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// Lengths of what is shown of a server's words, in bytes.
const (
	maxMessage = 2000
	maxPage    = 300
)

// describeBody returns what a person can make of a body in no known form: JSON and
// plain text as they are, the words of an HTML page, all of limited length.
func describeBody(body []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	if !strings.HasPrefix(s, "<") {
		return shorten(s, maxMessage)
	}
	return shorten(strings.Join(strings.Fields(html.UnescapeString(pageText(s))), " "), maxPage)
}

// pageText returns the text of an HTML page without tags, style and script.
func pageText(page string) string {
	var b strings.Builder
	for page != "" {
		text, rest, _ := strings.Cut(page, "<")
		b.WriteString(text)
		b.WriteByte(' ')
		for _, hidden := range []string{"style", "script"} {
			if len(rest) > len(hidden) && strings.EqualFold(rest[:len(hidden)], hidden) {
				_, rest, _ = strings.Cut(rest, "</")
			}
		}
		_, page, _ = strings.Cut(rest, ">")
	}
	return b.String()
}

// shorten cuts s to at most n bytes, at the border of a character, and marks the
// cut.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
