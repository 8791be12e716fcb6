package logging

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/llm/event/redact"
)

// packageKey is the attribute that names the package of a record. It is not printed.
const packageKey = "package"

// timeFormat is that of a line, in UTC.
const timeFormat = "2006-01-02 15:04:05.000"

// handler writes records as lines. It is immutable.
type handler struct {
	redact  *redactor
	now     func() time.Time
	thread  int
	out     *File
	json    bool
	context func(ctx context.Context) []slog.Attr

	pkg    string   // from a package attribute, empty if there was none
	group  string   // prefix of keys, "a.b."
	suffix string   // attributes of the logger, as they stand at the end of lines of text
	own    []member // likewise, of lines of JSON
}

// Enabled implements [slog.Handler]. Where the package is not known yet, a record may
// be dropped later.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	if h.pkg != "" {
		return level >= h.out.filter.Load().level(h.pkg)
	}
	return level >= h.out.filter.Load().least()
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	child := *h
	b := []byte(h.suffix)
	for _, a := range attrs {
		if h.group == "" && a.Key == packageKey {
			child.pkg = packageName(a.Value.String())
			continue
		}
		if h.json {
			child.own = h.appendMember(slices.Clip(child.own), h.group, a)
			continue
		}
		b = h.appendAttr(b, h.group, a)
	}
	child.suffix = string(b)
	return &child
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	child := *h
	child.group += name + "."
	return &child
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h = h.withHide(redact.InContext(ctx))
	src := sourceOf(r.PC)
	pkg, dir := h.pkg, h.pkg // what is shown, and what the filter compares
	if pkg == "" {
		pkg, dir = src.pkg, src.dir
	}
	var attrs []byte
	var members []member
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case h.group == "" && a.Key == packageKey:
			pkg = packageName(a.Value.String())
			dir = pkg
		case h.json:
			members = h.appendMember(members, h.group, a)
		default:
			attrs = h.appendAttr(attrs, h.group, a)
		}
		return true
	})
	if r.Level < h.out.filter.Load().level(dir) {
		return nil
	}
	if h.json {
		return h.out.write(h.object(ctx, r, pkg, slices.Concat(h.own, members)))
	}
	b := h.now().UTC().AppendFormat(make([]byte, 0, 256), timeFormat)
	b = fmt.Appendf(b, " <%d> [%s] %s:%d - ", h.thread, levelName(r.Level), src.file, src.line)
	b = appendText(b, h.redact.text(r.Message))
	b = append(b, h.suffix...)
	b = append(b, attrs...)
	return h.out.write(append(b, '\n'))
}

// withHide returns a handler that hides what hide does, too; nil is nothing.
func (h *handler) withHide(hide func(string) string) *handler {
	if hide == nil {
		return h
	}
	child, all := *h, *h.redact
	if all.hide = hide; h.redact.hide != nil {
		all.hide = func(text string) string { return h.redact.hide(hide(text)) }
	}
	child.redact = &all
	return &child
}

// appendAttr writes " key=value", members of groups one by one.
func (h *handler) appendAttr(b []byte, group string, a slog.Attr) []byte {
	eachLeaf(group, a, func(key string, leaf slog.Attr) {
		b = append(b, ' ')
		b = appendWord(b, key)
		b = append(b, '=')
		if sensitive(leaf.Key) {
			b = append(b, hidden...)
		} else {
			b = appendWord(b, h.redact.value(leaf.Value))
		}
	})
	return b
}

// eachLeaf calls do with an attribute or, of a group, with its members one by one. Their values are resolved, and key has the
// names of the groups in front. An empty attribute is left out.
func eachLeaf(group string, a slog.Attr, do func(key string, leaf slog.Attr)) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, member := range v.Group() {
			eachLeaf(group, member, do)
		}
		return
	}
	if !a.Equal(slog.Attr{}) {
		do(group+a.Key, slog.Attr{Key: a.Key, Value: v})
	}
}

// appendWord writes text so that its end can be seen: quoted where it is empty or has a
// space, a quote or an equals sign.
func appendWord(b []byte, text string) []byte {
	if text == "" || strings.ContainsAny(text, " \t\r\n\"=") {
		return strconv.AppendQuote(b, text)
	}
	return appendText(b, text)
}

// appendText writes text without its control characters: a line of the log is one
// record, and what a model or a tool wrote must not steer the terminal it is read on.
func appendText(b []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			b = fmt.Appendf(b, `\x%02x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}

// source is the place in the code that made a record.
type source struct {
	dir  string // agent/node: the package below "internal"
	pkg  string // node: without its wing, the first directory
	file string // node/llm.go
	line int
}

func sourceOf(pc uintptr) source {
	if pc == 0 {
		return source{file: "unknown"}
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	// The function is "loki/internal/agent/node.(*Runner).llm": the package ends at the
	// first dot after the last slash.
	dir := frame.Function
	slash := strings.LastIndexByte(dir, '/') + 1
	if dot := strings.IndexByte(dir[slash:], '.'); dot >= 0 {
		dir = dir[:slash+dot]
	}
	dir = packageName(dir)
	pkg := dir
	if _, rest, ok := strings.Cut(dir, "/"); ok {
		pkg = rest
	}
	name := strings.ReplaceAll(frame.File, `\`, "/")
	return source{dir: dir, pkg: pkg, file: path.Join(pkg, path.Base(name)), line: frame.Line}
}
