package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/value/yamldoc"
)

// Set gives a key at the top of the configuration file a text, a number or a boolean. The file is made if need be. All
// other lines of it stay as they are. If the file has a form in which that line cannot be written, the error, with code Config, shows the line to
// write by hand.
func Set(ctx context.Context, file, key string, value any) error {
	_, err := editFile(ctx, file, func(f *sheet) error { return f.set(f.root, key, value) }, func(before, after *sheet) bool {
		return after.has(after.root, key, value) && before.others(key) == after.others(key)
	}, "write this line into %s: "+pair(key, value))
	return err
}

// AddClient adds a client, an item of a list in lines, to the configuration file, as [Set] does.
func AddClient(ctx context.Context, file string, lines []string) error {
	_, err := editFile(ctx, file, func(f *sheet) error {
		if !f.root.Has("clients") {
			f.append("clients:", indentLines(2, lines...))
			return nil
		}
		return f.appendItem(f.root.Get("clients"), lines)
	}, func(before, after *sheet) bool {
		n := len(before.clients())
		added := fmt.Sprintf("clients[%d]", n)
		return len(after.clients()) == n+1 && before.others(added) == after.others(added)
	}, "add this below clients of %s:\n"+strings.Join(lines, "\n"))
	return err
}

// SetInClient gives a key of the client with a name a value, as [Set] does.
func SetInClient(ctx context.Context, file, client, key string, value any) error {
	path := ""
	_, err := editFile(ctx, file, func(f *sheet) error {
		n := f.client(client)
		if n == nil {
			return errForm
		}
		path = n.Path() + "." + key
		return f.set(n.Map(), key, value)
	}, func(before, after *sheet) bool {
		n := after.client(client)
		return n != nil && after.has(n.Map(), key, value) && before.others(path) == after.others(path)
	}, "write this line into the client "+client+" of %s: "+pair(key, value))
	return err
}

// Writable returns the error with code Config of a configuration file that cannot be written: it is no regular
// file, or it or its directory, which is made, is read-only.
func Writable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fault.New(fault.Config, "%s is not a regular file, so it is not changed", file)
	case err == nil:
		var f *os.File
		if f, err = os.OpenFile(file, os.O_WRONLY, 0); err == nil {
			err = f.Close()
		}
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(file)
		if err = os.MkdirAll(dir, 0o700); err == nil {
			var f *os.File
			if f, err = os.CreateTemp(dir, ".config-*"); err == nil {
				err = errors.Join(f.Close(), os.Remove(f.Name()))
			}
		}
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "%s cannot be written", file).WithHint("give yourself write access to it and its directory, or name another directory: LOKI_CONFIG_DIR=DIR")
	}
	return nil
}

// editFile changes the configuration file if good has nothing against the result, which it returns. byHand is a hint, with the name
// of the file, for a file that cannot be edited.
func editFile(ctx context.Context, file string, change func(*sheet) error, good func(before, after *sheet) bool, byHand string) (after *sheet, err error) {
	unlock, err := atomicfile.Lock(ctx, file+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := Writable(file); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	before, err := newSheet(file, src)
	if err != nil {
		return nil, err
	}
	f, _ := newSheet(file, src) // the same once more, to change it
	if strings.Contains(strings.ReplaceAll(string(src), "\r\n", "\n"), "\r") {
		err = errForm // which ends lines of YAML, and not those of the sheet
	} else if err = change(f); err == nil {
		if after, err = newSheet(file, []byte(f.String())); err != nil || !good(before, after) {
			err = errForm
		}
	}
	if errors.Is(err, errForm) {
		return nil, fault.Wrap(fault.Config, err, "%s was not changed", file).WithHint(byHand, file)
	}
	if err != nil {
		return nil, err
	}
	return after, atomicfile.Write(file, []byte(f.String()), atomicfile.Options{})
}

// clients returns the items of the list.
func (f *sheet) clients() []*yamldoc.Node {
	if !f.root.Has("clients") {
		return nil
	}
	items, _ := f.root.Get("clients").List()
	return items
}

// client returns the item of the client with a name, nil if there is none.
func (f *sheet) client(name string) *yamldoc.Node {
	for _, n := range f.clients() {
		var own string
		if m := n.Map(); !m.Str("name", &own) {
			m.Str("type", &own)
		}
		if own == name {
			return n
		}
	}
	return nil
}

// has reports whether a key of m has a value.
func (f *sheet) has(m *yamldoc.Map, key string, value any) bool {
	return m.Has(key) && m.Get(key).Literal() == fmt.Sprint(value)
}

// pair returns the line of a key and its value, without its end.
func pair(key string, value any) string {
	var w yamldoc.Writer
	w.Pair(0, key, value)
	return strings.TrimSuffix(w.String(), "\n")
}

// set writes a key of m and its value, in the place of the value that it has, or else after all lines of the file, or after the type of
// a client. A comment at the end of the line stays.
func (f *sheet) set(m *yamldoc.Map, key string, value any) error {
	line := pair(key, value)
	if !m.Has(key) {
		if !m.Has("type") || m == f.root {
			f.append(line)
			return nil
		}
		at := m.Get("type").KeyPos()
		f.insert(at.Line, indentLines(at.Column-1, line))
		return nil
	}
	at := m.Get(key).KeyPos()
	text := f.lines[at.Line-1]
	before := string([]rune(text)[:at.Column-1])
	old, ok := strings.CutPrefix(text[len(before):], key+":")
	if !ok {
		return errForm
	}
	old = strings.TrimRight(old, "\r\n")
	f.lines[at.Line-1] = before + line + old[valueEnd(old):] + f.end
	return nil
}

// valueEnd returns where the value ends that rest, the text after a key and its colon, begins with. What follows is a comment.
func valueEnd(rest string) int {
	from := len(rest) - len(strings.TrimLeft(rest, " "))
	if from < len(rest) && (rest[from] == '"' || rest[from] == '\'') {
		for i := from + 1; i < len(rest); i++ {
			switch {
			case rest[from] == '"' && rest[i] == '\\', rest[from] == '\'' && strings.HasPrefix(rest[i:], "''"):
				i++
			case rest[i] == rest[from]:
				return i + 1
			}
		}
		return len(rest)
	}
	if comment := strings.Index(rest, " #"); comment >= 0 {
		return len(strings.TrimRight(rest[:comment], " "))
	}
	return len(rest)
}
