package input

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/process/tempdir"
)

// Output returns what a command of the user's shell prints on both of its outputs, and how it
// ended. Each line is also passed to shown as it comes, one at a time.
func (l *Loader) Output(ctx context.Context, line string, shown func(line string)) (output string, status int, err error) {
	if l.Shell.Path == "" {
		return "", 0, fault.New(fault.Usage, "`%s`: commands cannot be attached here", line)
	}
	var (
		mu    sync.Mutex
		lines []string
	)
	add := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
		shown(line)
	}
	_, err = process.Run(ctx, process.Command{
		Path: l.Shell.Path, Args: []string{l.Shell.Flag, joinOutputs(l.Shell, line)}, Dir: l.Dir, Env: l.Child.Environ,
		Timeout: l.timeout(), HasTimeout: true, MaxStdout: MaxFileSize, MaxStderr: MaxFileSize,
		OnStdout: add, OnStderr: add,
	})
	if err != nil {
		ended, ok := errors.AsType[*process.ExitError](err)
		if !ok {
			return "", 0, processError("`"+line+"`", err)
		}
		status = ended.Code
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n"), status, nil
}

// joinOutputs returns a command that sends both outputs to one stream, so that what it
// prints stays in order, where the shell can do that.
func joinOutputs(s process.Shell, line string) string {
	switch s.Name {
	case "sh", "bash", "dash", "ksh", "zsh":
		return "exec 2>&1\n" + line
	}
	return line
}

// RunLoader runs the document loader called name on a document and returns the text.
func (l *Loader) RunLoader(ctx context.Context, name, document string) (string, error) {
	source, command := name+":"+document, l.Loaders[name]
	if l.Expand != nil {
		var err error
		if command, err = l.Expand(name, command); err != nil {
			return "", err
		}
	}
	dir, err := tempdir.Make("", "loader")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	output := filepath.Join(dir, "output")
	if strings.HasPrefix(document, "-") { // a program would take it for an option
		document = "./" + document
	}
	absolute, box, err := l.box(document, dir)
	if err != nil {
		return "", err
	}
	work := l.Dir
	if l.Own != nil && (box == nil || box.Level() == sandbox.Full) {
		document = cmp.Or(absolute, document)
		if work, err = l.Own("loader"); err != nil {
			return "", err
		}
	}
	argv, usesOutput, err := splitTemplate(command, document, output)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "the command of document loader %s", name).
			WithHint("it is set at document_loaders in config.yaml")
	}
	run := process.Command{
		Path: argv[0], Args: argv[1:], Dir: work, Env: append(slices.Clip(l.Programs.Environ), "PYTHONSAFEPATH=1"),
		Timeout: l.timeout(), HasTimeout: true, MaxStdout: MaxFileSize,
	}
	if box != nil {
		run.Confinement = box
	}
	printed, err := process.Run(ctx, run)
	if err != nil {
		failure := processError(source, err)
		if box != nil && failure.Hint == "" {
			failure.Hint = sandbox.Declaration{Level: sandbox.Read}.Note(box.Refusals(printed.Stderr, true), func(sandbox.Declaration) string {
				return "list what loaders may read under sandbox.read in config.yaml, or convert the file yourself"
			})
		}
		if failure.Hint == "" {
			failure.Hint = l.Programs.Note("list what it needs under permission.keep_env in config.yaml", printed.Stderr, command)
		}
		return "", failure
	}
	text := printed.Stdout
	if usesOutput {
		if text, err = readLimited(ctx, output, MaxFileSize); err != nil {
			return "", fault.Wrap(fault.Tool, err, "%s: %s wrote no usable output", source, argv[0])
		}
	}
	if !utf8.Valid(text) {
		return "", fault.New(fault.Tool, "%s: the output of %s is not text in UTF-8", source, argv[0])
	}
	return string(text), nil
}

// box returns the absolute path of a document that is a file, empty for another one, and what confines its loader, which writes in
// dir; nil if nothing does.
func (l *Loader) box(document, dir string) (path string, box *sandbox.Box, err error) {
	if path, err = l.abs(document); err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", nil, nil // not a file
	}
	if err := l.denyError(path); err != nil {
		return "", nil, err
	}
	if l.Sandbox == nil {
		return path, nil, nil
	}
	boxes, err := l.Sandbox()
	if err != nil {
		return "", nil, err
	}
	return path, boxes.Box(sandbox.Declaration{Level: sandbox.Read}, sandbox.Needs{Read: []string{path}, Write: []string{dir}, Consented: l.Consented}), nil
}

// splitTemplate splits the command of a loader into words as a POSIX shell does, with
// $1 and $2 for the document and the output. No shell runs it, so whatever else a shell
// would work out is an error.
func splitTemplate(template, document, output string) (argv []string, usesOutput bool, err error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(template), "")
	if err != nil {
		return nil, false, err
	}
	if len(file.Stmts) != 1 {
		return nil, false, errors.New("one command is expected")
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 || stmt.Background || stmt.Negated || len(call.Args) == 0 {
		return nil, false, errors.New("a program with its arguments is expected; for pipes and the like write sh -c '...'")
	}
	var word func(parts []syntax.WordPart, quoted bool) (string, error)
	word = func(parts []syntax.WordPart, quoted bool) (string, error) {
		var b strings.Builder
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(unescape(p.Value, quoted))
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				s, err := word(p.Parts, true)
				if err != nil {
					return "", err
				}
				b.WriteString(s)
			case *syntax.ParamExp:
				switch {
				case p.Param != nil && p.Param.Value == "1" && p.Exp == nil:
					b.WriteString(document)
				case p.Param != nil && p.Param.Value == "2" && p.Exp == nil:
					b.WriteString(output)
					usesOutput = true
				default:
					return "", errors.New("only $1 and $2 are known")
				}
			default:
				return "", fmt.Errorf("only words, quotes, $1 and $2 are known")
			}
		}
		return b.String(), nil
	}
	for _, arg := range call.Args {
		s, err := word(arg.Parts, false)
		if err != nil {
			return nil, false, err
		}
		argv = append(argv, s)
	}
	return argv, usesOutput, nil
}

// unescape takes the backslashes off a literal; within double quotes they are kept unless
// they stand before a character that is special there.
func unescape(s string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Part is a document of a document loader.
type Part struct {
	Path string // name:rest
	Text string
	Ext  string // extension of files with such text, without the dot; "" if it is not known

	Unread []string // what was not read of it, see [document.Content]
}

// LoadParts runs the document loader of a source name:rest. A JSON array of objects with path, contents
// and perhaps metadata.__extension__ is several documents, any other text is one.
func (l *Loader) LoadParts(ctx context.Context, source string) ([]Part, error) {
	name, rest, ok := l.loaderOf(source)
	if !ok {
		return nil, fault.New(fault.Usage, "%s: no document loader has this name", source)
	}
	if !l.HasLoader(name) {
		path, err := l.abs(rest)
		if err != nil {
			return nil, err
		}
		c, err := l.Convert(ctx, name, path)
		return []Part{{source, c.Text, c.Ext, c.Unread}}, err
	}
	text, err := l.RunLoader(ctx, name, rest)
	if err != nil {
		return nil, err
	}
	return splitLoaded(source, name, rest, text), nil
}

// splitLoaded returns the documents in what a loader printed.
func splitLoaded(source, name, rest, text string) []Part {
	whole := []Part{{Path: source, Text: text}}
	var items []struct {
		Path     *string        `json:"path"`
		Contents *string        `json:"contents"`
		Metadata map[string]any `json:"metadata"`
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "[") || json.Unmarshal([]byte(text), &items) != nil || len(items) == 0 {
		return whole
	}
	parts := make([]Part, 0, len(items))
	for _, item := range items {
		if item.Path == nil || item.Contents == nil {
			return whole
		}
		path := *item.Path
		switch {
		case strings.HasPrefix(path, source):
		case strings.HasPrefix(path, rest):
			path = name + ":" + path
		default:
			path = source + "/" + path
		}
		ext, _ := item.Metadata["__extension__"].(string)
		parts = append(parts, Part{Path: path, Text: *item.Contents, Ext: strings.ToLower(strings.TrimPrefix(ext, "."))})
	}
	return parts
}
