package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/text"
	"loki/internal/llm/provider"
)

// failure is what an error body says.
type failure struct {
	msg    string
	typ    string // error.type, error.status or the like
	code   string // error.code, also when it is a number
	status int    // an HTTP status inside the body, 0 if there is none
}

// statusError returns the error for a response of where with another status than 2xx.
func statusError(resp *http.Response, body []byte, where string) *provider.Error {
	f, ok := parseFailure(body)
	if !ok {
		f.msg = describeBody(body)
		if f.msg == "" {
			f.msg = cmp.Or(strings.ToLower(http.StatusText(resp.StatusCode)), "request failed")
		}
		if resp.StatusCode == http.StatusNotFound {
			f.msg = where + " answers: " + f.msg // which may be no API at all
		}
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		f.msg = "the server redirects to " + redirectTarget(resp) + ": set api_base to the URL that answers"
	}
	e := f.asError(resp.StatusCode, resp.Header)
	if provider.Retryable(e) {
		after, rate := quotaInfo(body, time.Now())
		if e.Rate = rate; e.RetryAfter == 0 || rate && after > e.RetryAfter {
			e.RetryAfter = after
		}
	}
	return e
}

// asError returns the failure as the error of a response with status and header.
// Status 0 and no header mean a failure within a reply.
func (f failure) asError(status int, header http.Header) *provider.Error {
	e := &provider.Error{Kind: classify(status, f), Status: status, Msg: f.msg}
	if provider.Retryable(e) {
		e.RetryAfter = retryAfter(header, f.msg)
	}
	return e
}

func redirectTarget(resp *http.Response) string {
	u, err := resp.Location()
	if err != nil {
		return "an unknown place"
	}
	return publicURL(u)
}

// ReplyError returns the failure that a JSON object inside a successful response
// reports, or the first item of an array does; nil if it reports none. The object may be
// the whole reply or a piece of a stream.
// What marks a failure is a member "error" or "errors" that says something, or the
// object or type "error"; a reply may well have members called message or detail.
func ReplyError(doc []byte) error {
	if !bytes.Contains(doc, []byte("rror")) { // names are case-insensitive
		return nil
	}
	doc = firstItem(doc)
	var signs struct {
		Object, Type  String
		Error, Errors json.RawMessage
	}
	if Tolerate(json.Unmarshal(doc, &signs)) != nil {
		return nil
	}
	if !present(signs.Error) && !present(signs.Errors) && signs.Object != "error" && signs.Type != "error" {
		return nil
	}
	if f, ok := parseFailure(doc); ok {
		return f.asError(f.status, nil)
	}
	return BadReply("the server reports an error of unknown form", doc)
}

// Complaint returns the failure that a reply reports in fields of its own: a
// message with the type and the code of the error, where there are any.
func Complaint(msg, typ, code string) error {
	f := failure{msg: text.Cut(msg, maxMessage), typ: typ, code: code, status: httpStatus(code)}
	switch {
	case msg == "":
		f.msg = "the server reports an error: " + cmp.Or(typ, code, "unknown")
	case typ != "":
		f.msg = withSuffix(f.msg, "type", typ)
	case code != "" && f.status == 0:
		f.msg = withSuffix(f.msg, "code", code)
	}
	return f.asError(f.status, nil)
}

// BadReply returns the error for a reply that cannot be understood: what says why,
// and the beginning of body is quoted.
func BadReply(what string, body []byte) error {
	if shown := describeBody(body); shown != "" {
		what += ": " + text.Cut(shown, maxPage)
	}
	return &provider.Error{Kind: provider.BadReply, Msg: what}
}

// Excerpt returns the beginning of a body as errors show it, on few lines.
func Excerpt(body []byte) string { return text.Cut(describeBody(body), maxPage) }

// MissingError returns the error for a whole reply, or what came in its place, without
// the thing that was asked for: the failure that it reports, in whatever form, or
// that it is not a reply.
func MissingError(thing string, body []byte) error {
	if f, ok := parseFailure(body); ok {
		return f.asError(f.status, nil)
	}
	return BadReply("the reply holds no "+thing, body)
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
	body = firstItem(body)
	var doc struct {
		Error     json.RawMessage
		Errors    []errorObject
		Detail    Text
		Message   Text
		Type      String
		Code      String
		Status    String
		ErrorType String   `json:"error_type"`
		BaseResp  struct { // MiniMax
			StatusCode String `json:"status_code"`
			StatusMsg  Text   `json:"status_msg"`
		} `json:"base_resp"`
	}
	if Tolerate(json.Unmarshal(body, &doc)) != nil {
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
		return failure{msg: withSuffix(string(e.Message), "status", string(e.Code)), code: string(e.Code), status: httpStatus(string(e.Code))}, true
	}
	if r := doc.BaseResp; r.StatusMsg != "" && r.StatusCode != "0" {
		return failure{msg: withSuffix(string(r.StatusMsg), "code", string(r.StatusCode)), code: string(r.StatusCode)}, true
	}
	top.msg = cmp.Or(string(doc.Detail), string(doc.Message))
	if doc.Detail != "" {
		top.msg = withSuffix(top.msg, "status", string(doc.Status))
		top.status = httpStatus(string(doc.Status))
	}
	return top, top.msg != ""
}

// firstItem returns the first item of a JSON array, and anything else as it is.
func firstItem(doc []byte) []byte {
	var list []json.RawMessage
	if doc = bytes.TrimSpace(doc); bytes.HasPrefix(doc, []byte("[")) && json.Unmarshal(doc, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return doc
}

type errorObject struct {
	Message  Text
	Type     String
	Code     String
	Status   String
	Metadata struct{ Raw Text }    // OpenRouter: what the provider behind it said
	Inner    struct{ Code String } `json:"innererror"`
}

// parseErrorMember reads the value of "error": an object, or a text with type and
// code beside it.
func parseErrorMember(v json.RawMessage, top failure) (failure, bool) {
	var msgOnly Text
	if json.Unmarshal(v, &msgOnly) == nil && msgOnly != "" && v[0] == '"' {
		top.msg = string(msgOnly)
		return top, true
	}
	var e errorObject
	if Tolerate(json.Unmarshal(v, &e)) != nil || e.Message == "" {
		return failure{}, false
	}
	msg := string(e.Message)
	if raw := text.Cut(strings.TrimSpace(string(e.Metadata.Raw)), 500); raw != "" && raw != msg {
		msg += ": " + raw
	}
	code := string(e.Code)
	switch {
	case e.Type != "":
		msg = withSuffix(msg, "type", string(e.Type))
	case code != "" && httpStatus(code) == 0:
		msg = withSuffix(msg, "code", code)
	case e.Status != "":
		msg = withSuffix(msg, "status", string(e.Status))
	}
	if e.Inner.Code != "" {
		code += " " + string(e.Inner.Code)
	}
	return failure{
		msg: text.Cut(msg, maxMessage), code: code, status: httpStatus(string(e.Code)),
		typ: cmp.Or(string(e.Type), string(e.Status)),
	}, true
}

func withSuffix(msg, label, value string) string {
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
	maxMessage = 2000 + len(text.Mark)
	maxPage    = 300 + len(text.Mark)
)

// describeBody returns what a person can make of a body in no known form: JSON and
// plain text as they are, the words of an HTML page, all of limited length.
func describeBody(body []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	if !strings.HasPrefix(s, "<") {
		return text.Cut(s, maxMessage)
	}
	return text.Cut(strings.Join(strings.Fields(html.UnescapeString(pageText(s))), " "), maxPage)
}

// pageText returns the text of an HTML page without tags, style and script.
func pageText(page string) string {
	var b strings.Builder
	for page != "" {
		visible, rest, _ := strings.Cut(page, "<")
		b.WriteString(visible)
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
