package builtin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"loki/internal/base/text"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
)

// Limits of what is read.
const (
	maxCat       = 16 << 20 // bytes of a file that fs_cat reads
	defaultLines = 2000     // lines that fs_read returns without a limit
	maxLineBytes = 2000     // bytes of a line that fs_read and fs_grep show
	largeFile    = 50 << 10 // bytes above which fs_read recommends reading in parts
	maxRead      = 60 << 10 // bytes that fs_read returns; less than the limit of a Box
	maxNames     = 1000     // names of a directory that are listed
)

var pathParam = []param{{name: "path", kind: "string", description: "Path of the file, absolute or relative to the working directory."}}

// pathArgs are the arguments of tools with a path only.
type pathArgs struct {
	Path string `json:"path"`
}

// readAt runs read at a path. The result has a note if the path escapes.
func (b *base) readAt(call tool.Call, path string, read func(p fsys.Path) (string, error)) (tool.Result, error) {
	p, err := b.rootOf(call).Resolve(path)
	if err != nil {
		return tool.Result{}, err
	}
	out, err := read(p)
	return tool.Result{Output: out, Stderr: p.Note()}, err
}

func (b *base) fsCat() tool.Tool {
	return &native{
		name:        "fs_cat",
		description: "Read the contents of a text file. Use fs_read instead to see line numbers or a part of a large file.",
		params:      pathParam,
		hints:       tool.Hints{ReadOnly: true},
		run: run(pathParam, func(ctx context.Context, args pathArgs, call tool.Call) (tool.Result, error) {
			return b.readAt(call, args.Path, func(p fsys.Path) (string, error) {
				if text, ok := b.root.EditorText(ctx, p, maxCat); ok {
					return verbatim(text), nil
				}
				data, _, err := fsys.Text(p, maxCat)
				if err != nil {
					return "", catHint(p, err)
				}
				return verbatim(strings.TrimPrefix(string(data), fsys.Mark)), nil
			})
		}),
	}
}

// catHint adds to an error what the model can do instead.
func catHint(p fsys.Path, err error) error {
	switch {
	case errors.Is(err, fsys.ErrDirectory):
		return fmt.Errorf("%w; fs_ls lists what is in it", err)
	case errors.Is(err, fsys.ErrTooLarge):
		return fmt.Errorf("%w; fs_read reads a part of it, and fs_grep searches it", err)
	}
	return err
}

// verbatim returns output that reaches the model unchanged. The Box would strip blanks
// and line breaks from JSON, and a patch made from that would not fit.
func verbatim(text string) string {
	if len(text) > tool.DefaultMaxOutput/2 || !json.Valid([]byte(text)) {
		return text
	}
	doc, err := json.Marshal(map[string]string{"output": text})
	if err != nil {
		return text
	}
	return string(doc)
}

type readArgs struct {
	Path   string `json:"path"`
	Offset number `json:"offset"`
	Limit  number `json:"limit"`
}

func (b *base) fsRead() tool.Tool {
	params := []param{
		{name: "path", kind: "string", description: "Path of the file or directory, absolute or relative to the working directory."},
		{name: "offset", kind: "integer", description: "Line to start at, from 1. Default 1.", optional: true},
		{name: "limit", kind: "integer", description: "How many lines to read. Default 2000.", optional: true},
	}
	return &native{
		name: "fs_read",
		description: "Read a text file with line numbers, all of it or some lines. Each line is shown as 'number: text'. " +
			"A note at the end says where to continue if lines remain. For a directory the names in it are listed.",
		params: params,
		hints:  tool.Hints{ReadOnly: true},
		run: run(params, func(ctx context.Context, args readArgs, call tool.Call) (tool.Result, error) {
			if args.Offset < 0 || args.Limit < 0 {
				return tool.Result{}, errors.New("offset and limit cannot be negative")
			}
			args.Offset, args.Limit = max(args.Offset, 1), orNumber(args.Limit, defaultLines)
			return b.readAt(call, args.Path, func(p fsys.Path) (string, error) {
				if info, err := os.Stat(p.Real); err == nil && info.IsDir() {
					return list(p, call.Hidden)
				}
				if text, ok := b.root.EditorText(ctx, p, maxCat); ok {
					return linesOf(ctx, p, strings.NewReader(text), int64(len(text)), int(args.Offset), int(args.Limit))
				}
				return readLines(ctx, p, int(args.Offset), int(args.Limit))
			})
		}),
	}
}

func orNumber(n, other number) number {
	if n == 0 {
		return other
	}
	return n
}

// readLines returns the lines of a file from offset on.
func readLines(ctx context.Context, p fsys.Path, offset, limit int) (string, error) {
	f, info, err := fsys.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return linesOf(ctx, p, f, info.Size(), offset, limit)
}

// linesOf returns the lines of the file p, which has size bytes, from offset on.
func linesOf(ctx context.Context, p fsys.Path, from io.Reader, size int64, offset, limit int) (string, error) {
	r := bufio.NewReaderSize(from, 16<<10)
	head, _ := r.Peek(8 << 10)
	if !fsys.IsText(head) {
		return "", fsys.Binary(p.Shown, head, size)
	}
	if bytes.HasPrefix(head, []byte(fsys.Mark)) {
		_, _ = r.Discard(len(fsys.Mark))
	}
	if fsys.StyleOf(head).End == "\r" {
		r = bufio.NewReaderSize(returns{r}, 16<<10)
	}
	var out strings.Builder
	if size > largeFile && offset == 1 && limit >= defaultLines {
		fmt.Fprintf(&out, "[%s has %d bytes. Better search it with fs_grep, or read parts of it with offset and limit.]\n", p.Shown, size)
	}
	number, shown := 0, 0
	for {
		line, cut, err := readLine(r)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", fsys.Describe(p.Shown, err)
		}
		number++
		if number%4096 == 0 && ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if number < offset {
			continue
		}
		if shown == limit || out.Len()+len(line) > maxRead {
			fmt.Fprintf(&out, "[more lines follow: continue with offset %d]\n", number)
			return out.String(), nil
		}
		out.WriteString(strconv.Itoa(number) + ": " + line)
		if cut > 0 {
			fmt.Fprintf(&out, " [%d more bytes of this line]", cut)
		}
		out.WriteByte('\n')
		shown++
	}
	switch {
	case number == 0:
		return "[the file is empty]\n", nil
	case shown == 0:
		return "", fmt.Errorf("%s has only %d lines, so there is no line at offset %d", p.Shown, number, offset)
	}
	return out.String(), nil
}

// returns reads a text with a line feed for each carriage return, which ends its lines.
type returns struct{ io.Reader }

func (r returns) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// readLine returns a line without its end, shortened to maxLineBytes, and how many bytes
// that leaves out. The error is io.EOF when there is no further line.
func readLine(r *bufio.Reader) (line string, cut int, err error) {
	var kept, last []byte
	length := 0
	for {
		part, err := r.ReadSlice('\n')
		length += len(part)
		if room := maxLineBytes + 2 - len(kept); room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if len(part) > 0 {
			last = append(last[:0], part[max(0, len(part)-2):]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && (err != io.EOF || length == 0) {
			return "", 0, err
		}
		break
	}
	switch {
	case bytes.HasSuffix(last, []byte("\r\n")):
		length -= 2
	case bytes.HasSuffix(last, []byte("\n")):
		length--
	}
	kept = kept[:min(len(kept), length)]
	if len(kept) > maxLineBytes {
		end := maxLineBytes
		for end > 0 && !utf8.RuneStart(kept[end]) {
			end--
		}
		kept = kept[:end]
	}
	return string(kept), length - len(kept), nil
}

func (b *base) fsLs() tool.Tool {
	params := []param{{name: "path", kind: "string", description: "Path of the directory, absolute or relative to the working directory."}}
	return &native{
		name:        "fs_ls",
		description: "List the files and directories in a directory, one name per line. The names of directories end with a slash.",
		params:      params,
		hints:       tool.Hints{ReadOnly: true},
		run: run(params, func(_ context.Context, args pathArgs, call tool.Call) (tool.Result, error) {
			return b.readAt(call, args.Path, func(p fsys.Path) (string, error) { return list(p, call.Hidden) })
		}),
	}
}

// list returns the names in a directory, or that of a file. It leaves out what is hidden.
func list(p fsys.Path, hidden func(string) bool) (string, error) {
	info, err := os.Stat(p.Real)
	if err != nil {
		return "", fsys.Describe(p.Shown, err)
	}
	if !info.IsDir() {
		return p.Shown + "\n", nil
	}
	dir, err := fsys.OpenReal(p.Real)
	if err != nil {
		return "", fsys.Describe(p.Shown, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return "", fsys.Describe(p.Shown, err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return isHidden(hidden, p, e.Name()) })
	if len(entries) == 0 {
		return "[the directory is empty]\n", nil
	}
	var out strings.Builder
	for i, e := range entries {
		if i == maxNames {
			fmt.Fprintf(&out, "[%d more names are not listed; fs_glob finds files by a pattern]\n", len(entries)-i)
			break
		}
		out.WriteString(text.Name(e.Name()))
		switch kind := e.Type(); {
		case e.IsDir():
			out.WriteByte('/')
		case kind&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) != 0:
			out.WriteString(" [" + text.FileKind(kind) + "]")
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}
