package logging

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"loki/internal/base/value"
)

// member is an attribute in a line of JSON.
type member struct {
	key  string
	json []byte // its value
}

// first are the members that a line of JSON begins with, after the ones that all have.
var first = [...]string{"request_id", "subject", "session_id", "run_id"}

type runIDKey struct{}

// object returns a record as a line of JSON: the time, the level and the package, what is known of the request and the run,
// the message, and the other attributes.
func (h *handler) object(ctx context.Context, r slog.Record, pkg string, members []member) []byte {
	if h.context != nil {
		for _, a := range h.context(ctx) {
			members = h.appendMissing(members, a)
		}
	}
	if run, ok := ctx.Value(runIDKey{}).(string); ok {
		members = h.appendMissing(members, slog.String("run_id", run))
	}
	b := append(make([]byte, 0, 512), `{"timestamp":"`...)
	b = h.now().UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","level":"`...)
	b = append(b, strings.ToLower(levelName(r.Level))...)
	b = append(b, `","target":`...)
	b = appendJSON(b, pkg)
	for _, name := range first {
		for _, m := range members {
			if m.key == name {
				b = m.append(b)
			}
		}
	}
	b = append(b, `,"msg":`...)
	b = appendJSON(b, h.redact.text(r.Message))
	for _, m := range members {
		if !slices.Contains(first[:], m.key) {
			b = m.append(b)
		}
	}
	return append(b, "}\n"...)
}

// appendMissing adds an attribute, unless there is one with its key.
func (h *handler) appendMissing(list []member, a slog.Attr) []member {
	if slices.ContainsFunc(list, func(m member) bool { return m.key == a.Key }) {
		return list
	}
	return h.appendMember(list, "", a)
}

// appendMember adds an attribute, members of groups one by one. Numbers and booleans stay what they are; all else is text.
func (h *handler) appendMember(list []member, group string, a slog.Attr) []member {
	eachLeaf(group, a, func(key string, leaf slog.Attr) {
		m := member{key: key}
		switch v := leaf.Value; {
		case sensitive(leaf.Key):
			m.json = appendJSON(nil, hidden)
		case v.Kind() == slog.KindInt64 || v.Kind() == slog.KindUint64 || v.Kind() == slog.KindBool || v.Kind() == slog.KindFloat64:
			m.json = appendJSON(nil, v.Any())
		case v.Kind() == slog.KindDuration:
			m.json = appendJSON(nil, v.Duration().Round(time.Microsecond).Seconds())
		default:
			m.json = appendJSON(nil, h.redact.value(v))
		}
		list = append(list, m)
	})
	return list
}

// append writes the member behind another one.
func (m member) append(b []byte) []byte {
	b = appendJSON(append(b, ','), m.key)
	return append(append(b, ':'), m.json...)
}

// appendJSON writes a text, a number or a boolean. What JSON cannot say, such as infinity, is null.
func appendJSON(b []byte, v any) []byte {
	text, err := value.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}
