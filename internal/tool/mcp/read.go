package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
)

// maxFile is the size of the largest mcp.json that is read, in bytes.
const maxFile = 8 << 20

// Read reads the file at path. A missing or blank file has no servers. The error, with
// code Config, is about the file as a whole; a mistake in one server is in its Err.
func Read(path string) (*File, error) {
	f, err := userfile.Open(context.Background(), path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Path: path}, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "MCP servers")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "MCP servers")
	}
	if len(text) > maxFile {
		return nil, fault.New(fault.Config, "%s: larger than %d MiB", path, maxFile>>20)
	}
	return Parse(path, text)
}

// Parse reads the text of mcp.json; path is for messages.
func Parse(path string, text []byte) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors on Windows
	f := &File{Path: path, Key: "mcpServers"}
	if len(bytes.TrimSpace(text)) == 0 {
		return f, nil
	}
	if !utf8.Valid(text) {
		return nil, fault.New(fault.Config, "%s: not UTF-8", path)
	}
	r := reader{file: f, text: text}
	root, err := r.object()
	if err != nil {
		return nil, err
	}
	named := func(m member) bool { return m.name == f.Key }
	if !slices.ContainsFunc(root, named) {
		f.Key = "servers" // of VS Code
	}
	found := false
	for _, m := range root {
		if !named(m) {
			continue // settings of other programs
		}
		if found {
			return nil, r.errorAt(m.offset, "%s appears twice", f.Key)
		}
		found = true
		if err := r.servers(m); err != nil {
			return nil, err
		}
	}
	if !found {
		e := r.errorAt(0, "mcpServers is missing")
		return nil, e.WithHint(`{"mcpServers": {"NAME": {"command": "..."}}}`)
	}
	setSlugs(f.Servers)
	return f, nil
}

// member is a member of an object in the text.
type member struct {
	name   string
	offset int // of the name
	value  json.RawMessage
	start  int // offset of the value
}

// reader reads one file.
type reader struct {
	file *File
	text []byte
}

func (r *reader) object() ([]member, error) {
	// The decoder finds most mistakes late, and without their position. So the whole
	// text is checked first.
	var all json.RawMessage
	if err := json.Unmarshal(r.text, &all); err != nil {
		offset := len(r.text)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = max(int(syntax.Offset)-1, 0)
		}
		e := r.errorAt(offset, "%v", err)
		if bytes.HasPrefix(r.text[min(offset, len(r.text)):], []byte("{")) && offset > 0 && r.text[offset-1] == '{' {
			e = e.WithHint(`references to secrets stand between quotes: "{{NAME}}"`)
		}
		return nil, e
	}
	members, ok := members(r.text, 0)
	if !ok {
		return nil, r.errorAt(0, "not an object")
	}
	return members, nil
}

// members returns the members of text in order, if it is an object. text must be valid JSON that
// begins at offset base of the file.
func members(text []byte, base int) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var list []member
	for d.More() {
		before := int(d.InputOffset())
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		m := member{name: name, offset: base + before + skip(text[before:])}
		after := int(d.InputOffset())
		m.start = base + after + skip(text[after:])
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		list = append(list, m)
	}
	return list, true
}

// skip counts the bytes between two tokens.
func skip(text []byte) int {
	return len(text) - len(bytes.TrimLeft(text, " \t\r\n,:"))
}

func (r *reader) position(offset int) (line, column int) {
	before := r.text[:min(offset, len(r.text))]
	line = bytes.Count(before, []byte{'\n'}) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

func (r *reader) errorAt(offset int, format string, args ...any) *fault.Error {
	line, column := r.position(offset)
	return fault.New(fault.Config, "%s: %s", at(r.file.Path, line, column), fmt.Sprintf(format, args...))
}

func (r *reader) warn(offset int, format string, args ...any) {
	line, column := r.position(offset)
	r.file.Warnings = append(r.file.Warnings, Warning{r.file.Path, line, column, fmt.Sprintf(format, args...)})
}

func (r *reader) servers(m member) error {
	entries, ok := members(m.value, m.start)
	if !ok {
		return r.errorAt(m.start, "%s is not an object", m.name)
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if strings.TrimSpace(e.name) == "" {
			return r.errorAt(e.offset, "a server without a name")
		}
		if seen[e.name] {
			return r.errorAt(e.offset, "server %q appears twice", e.name)
		}
		seen[e.name] = true
		s := Server{ID: e.name, Expose: Meta, file: r.file.Path}
		if err := r.server(&s, e); err != nil {
			s.Err = err
		}
		r.file.Servers = append(r.file.Servers, s)
	}
	return nil
}

// foreign is a reference to what only other programs have, such as an answer of their user.
var foreign = text.Regexp(`\$\{(input|command|config):[^}"]*\}`)

// draft is a server while its members are read.
type draft struct {
	server *Server
	at     map[string]int // offsets of the members that were read
}

// keys are the members of a server, each with its reader.
func keys() map[string]func(e *draft, value json.RawMessage) error {
	return map[string]func(e *draft, value json.RawMessage) error{
		"type": func(e *draft, v json.RawMessage) error {
			if slices.Contains([]string{`"streamable-http"`, `"streamableHttp"`}, string(v)) { // of other programs
				v = json.RawMessage(`"http"`)
			}
			return oneOf(v, &e.server.Type, Stdio, HTTP, SSE)
		},
		"command": func(e *draft, v json.RawMessage) error { return readText(v, &e.server.Command) },
		"args":    func(e *draft, v json.RawMessage) error { return texts(v, &e.server.Args) },
		"env": func(e *draft, v json.RawMessage) (err error) {
			e.server.Env, err = table(v, true)
			if err == nil {
				err = checkEnv(e.server.Env)
			}
			return err
		},
		"cwd": func(e *draft, v json.RawMessage) error { return readText(v, &e.server.Dir) },
		"sandbox": func(e *draft, v json.RawMessage) (err error) {
			e.server.Sandbox, err = declaration(v)
			return err
		},
		"url": func(e *draft, v json.RawMessage) error { return readText(v, &e.server.URL) },
		"headers": func(e *draft, v json.RawMessage) (err error) {
			e.server.Headers, err = table(v, false)
			return err
		},
		"expose":                func(e *draft, v json.RawMessage) error { return oneOf(v, &e.server.Expose, Meta, Direct) },
		"timeout_seconds":       func(e *draft, v json.RawMessage) error { return seconds(v, &e.server.Timeout, true) },
		"start_timeout_seconds": func(e *draft, v json.RawMessage) error { return seconds(v, &e.server.StartTimeout, true) },
		"idle_timeout_seconds": func(e *draft, v json.RawMessage) error {
			e.server.HasIdleTimeout = true
			return seconds(v, &e.server.IdleTimeout, false)
		},
		"disabled": func(e *draft, v json.RawMessage) error {
			if json.Unmarshal(v, &e.server.Disabled) != nil {
				return errors.New("must be true or false")
			}
			return nil
		},
		"oauth": func(e *draft, v json.RawMessage) error {
			if e.server.NoOAuth = string(v) == "false"; e.server.NoOAuth {
				return nil
			}
			if _, ok := members(v, 0); !ok {
				return errors.New("must be an object, or false")
			}
			e.server.OAuth = bytes.Clone(v)
			return nil
		},
	}
}

func (r *reader) server(s *Server, m member) error {
	list, ok := members(m.value, m.start)
	if !ok {
		return r.errorAt(m.start, "server %q: not an object", s.ID)
	}
	known := keys()
	e := &draft{server: s, at: make(map[string]int, len(list))}
	var first error
	for _, field := range list {
		read, ok := known[field.name]
		if !ok {
			text := fmt.Sprintf("server %q: unknown member %q", s.ID, field.name)
			if near := yamldoc.Nearest(field.name, slices.Sorted(maps.Keys(known))); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			r.warn(field.offset, "%s", text)
			continue
		}
		if _, twice := e.at[field.name]; twice {
			first = cmp.Or[error](first, r.errorAt(field.offset, "server %q: %q appears twice", s.ID, field.name))
			continue
		}
		e.at[field.name] = field.offset
		if string(field.value) == "null" {
			delete(e.at, field.name) // as if it were missing
			continue
		}
		if ref := foreign().FindString(string(field.value)); ref != "" {
			r.warn(field.start, "server %q: %s has %s, which is passed on as it is: Loki knows {{NAME}} for a secret of the vault, ${NAME} for a variable, and ${%s}", s.ID, field.name, ref, workspaceFolder)
		}
		if err := read(e, field.value); err != nil {
			first = cmp.Or[error](first, r.errorAt(field.start, "server %q: %s %v", s.ID, field.name, err))
		}
	}
	if first != nil {
		return first
	}
	return r.check(e, m.offset)
}

// check completes the type and reports members that do not fit it.
func (r *reader) check(e *draft, offset int) error {
	s := e.server
	has := func(key string) bool { _, ok := e.at[key]; return ok }
	if !has("type") {
		switch {
		case has("command") && has("url"):
			return r.errorAt(e.at["url"], "server %q has both a command and a url", s.ID)
		case has("command"):
			s.Type = Stdio
		case has("url"):
			s.Type = HTTP
		default:
			return r.errorAt(offset, "server %q has neither a command nor a url", s.ID)
		}
	}
	required, refused := "url", []string{"command", "args", "cwd", "sandbox"}
	if s.Type == Stdio {
		required, refused = "command", []string{"url", "headers"}
	}
	for _, key := range refused {
		if has(key) {
			return r.errorAt(e.at[key], "server %q: %s is not for servers of type %s", s.ID, key, s.Type)
		}
	}
	if cmp.Or(s.Command, s.URL) == "" {
		return r.errorAt(offset, "server %q of type %s has no %s", s.ID, s.Type, required)
	}
	return nil
}

// declaration reads what the program of a server may do.
func declaration(v json.RawMessage) (sandbox.Declaration, error) {
	doc, err := yamldoc.Parse("", v) // JSON is YAML
	if err != nil {
		return sandbox.Declaration{}, err
	}
	d, ok := sandbox.ReadDeclaration(doc.Root())
	if problems := doc.Errors(); !ok && len(problems) > 0 {
		return d, errors.New(problems[0].Msg)
	}
	return d, nil
}

func readText(v json.RawMessage, to *string) error {
	if err := json.Unmarshal(v, to); err != nil {
		return errors.New("must be a string")
	}
	if strings.ContainsRune(*to, 0) {
		return errors.New("must not have a NUL")
	}
	return nil
}

func texts(v json.RawMessage, to *[]string) error {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return errors.New("must be a list of strings")
	}
	for i, item := range list {
		var s string
		if string(item) == "null" || readText(item, &s) != nil {
			return fmt.Errorf("must be a list of strings, and number %d is not a string", i+1)
		}
		*to = append(*to, s)
	}
	return nil
}

// table reads an object of strings and, if scalars is set, of booleans and integers.
func table(v json.RawMessage, scalars bool) (map[string]string, error) {
	list, ok := members(v, 0)
	if !ok {
		return nil, errors.New("must be an object")
	}
	all := make(map[string]string, len(list))
	for _, m := range list {
		var s string
		var b bool
		var n int64
		switch {
		case string(m.value) != "null" && readText(m.value, &s) == nil:
			all[m.name] = s
		case !scalars:
			return nil, fmt.Errorf("must be an object of strings, and %q is not a string", m.name)
		case string(m.value) != "null" && json.Unmarshal(m.value, &b) == nil,
			string(m.value) != "null" && json.Unmarshal(m.value, &n) == nil:
			all[m.name] = string(m.value)
		default:
			return nil, fmt.Errorf("must hold strings, booleans and integers, and %q is something else", m.name)
		}
	}
	return all, nil
}

func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("has %q, which cannot be the name of a variable", name)
		}
	}
	return nil
}

func oneOf[T ~string](v json.RawMessage, to *T, options ...T) error {
	var s string
	_ = json.Unmarshal(v, &s)
	if i := slices.Index(options, T(s)); i >= 0 {
		*to = options[i]
		return nil
	}
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = string(o)
	}
	return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
}

// maxSeconds is the longest time limit, a year.
const maxSeconds = 365 * 24 * 60 * 60

func seconds(v json.RawMessage, to *time.Duration, positive bool) error {
	var n float64
	if json.Unmarshal(v, &n) != nil || n < 0 || n > maxSeconds || positive && n == 0 {
		return errors.New("must be a number of seconds, of at most a year")
	}
	*to = time.Duration(math.Ceil(n * float64(time.Second)))
	return nil
}
