package builtin

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"loki/internal/base/text"
	"loki/internal/base/text/pattern"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
	"loki/internal/tool/builtin/grep"
	"loki/internal/tool/builtin/tree"
)

// Limits of what is found.
const (
	maxGlob = 100 // files
	maxGrep = 50  // lines
)

// skippedByGlob reports whether a directory is not searched.
func skippedByGlob(name string) bool {
	switch name {
	case ".git", "node_modules", "target", "dist", "__pycache__", "vendor", ".build":
		return true
	}
	return false
}

func skippedByGrep(name string) bool {
	return skippedByGlob(name) || name == "build" || name == ".next"
}

// isGenerated reports whether a file is a generated one, by its name.
func isGenerated(name string) bool {
	return name == "package-lock.json" || slices.ContainsFunc([]string{".min.js", ".min.css", ".map", ".lock"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (b *base) fsGlob() tool.Tool {
	params := []param{
		{name: "pattern", kind: "string", description: "Glob pattern, such as *.go, src/**/*.{ts,tsx} or **/test_*.py. A pattern without a slash matches file names in all directories, one with a slash matches paths."},
		{name: "path", kind: "string", description: "Directory to search. Default is the working directory.", optional: true},
	}
	return &native{
		name: "fs_glob",
		description: "Find files by a glob pattern. Returns the paths of at most 100 files, the most recently modified first. " +
			"Files that .gitignore and .ignore name are left out, and so are directories such as .git, node_modules and vendor.",
		params: params,
		hints:  tool.Hints{ReadOnly: true},
		run: run(params, func(ctx context.Context, args globArgs, call tool.Call) (tool.Result, error) {
			dir, glob := splitPattern(cmp.Or(args.Path, "."), filepath.ToSlash(args.Pattern))
			return b.readAt(call, dir, func(p fsys.Path) (string, error) {
				g, err := tree.Compile(p.Real, glob)
				if err != nil {
					return "", err
				}
				return globFiles(ctx, p, args.Pattern, g, call.Hidden)
			})
		}),
	}
}

// splitPattern moves the directories that an absolute pattern, one in the home directory, or one that goes up, begins with to
// the directory. The first two do not depend on dir.
func splitPattern(dir, glob string) (string, string) {
	glob = strings.TrimPrefix(glob, "./")
	anywhere := filepath.IsAbs(filepath.FromSlash(glob)) || strings.HasPrefix(glob, "~/")
	if !anywhere && !strings.HasPrefix(glob, "../") {
		return dir, glob
	}
	above, rest := pattern.Split(glob)
	if rest == "" { // it is a path
		above, rest = path.Split(above)
		rest = pattern.Escape(rest)
	}
	if !strings.Contains(rest, "/") {
		rest = "/" + rest // a path, and not a name in all directories
	}
	if !anywhere {
		above = path.Join(dir, above)
	}
	return cmp.Or(above, "/"), rest
}

// globFiles finds the files and words the result.
func globFiles(ctx context.Context, p fsys.Path, sought string, g *tree.Glob, hidden func(string) bool) (string, error) {
	type match struct {
		path  string
		mtime int64
	}
	var mu sync.Mutex
	var matches []match
	unreadable, err := tree.Walker{SkipDir: skippedByGlob}.Walk(ctx, p.Real, func(_ int, f tree.File) {
		if !g.Match(f.Path) || isHidden(hidden, p, f.Path) {
			return
		}
		info, err := f.Entry.Info()
		if err != nil {
			return // gone meanwhile
		}
		mu.Lock()
		defer mu.Unlock()
		matches = append(matches, match{f.Path, info.ModTime().UnixNano()})
	})
	if err != nil {
		return "", searchError(ctx, p, err)
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.mtime, a.mtime), tree.Compare(a.path, b.path))
	})
	var out strings.Builder
	for i, m := range matches {
		if i == maxGlob {
			fmt.Fprintf(&out, "[%d more files match; a narrower pattern or path shows them]\n", len(matches)-i)
			break
		}
		out.WriteString(joinShown(p, m.path) + "\n")
	}
	if len(matches) == 0 {
		fmt.Fprintf(&out, "[no file matches %s in %s]\n", sought, p.Shown)
	}
	return out.String() + unreadableNote(unreadable), nil
}

// isHidden reports whether a rule keeps a file that was found below p from the tool.
func isHidden(hidden func(string) bool, p fsys.Path, found string) bool {
	if hidden == nil {
		return false
	}
	return hidden(filepath.Join(p.Real, filepath.FromSlash(found)))
}

// joinShown returns a found path in the form that other tools take, on one line.
func joinShown(p fsys.Path, found string) string {
	switch {
	case found == "":
		return p.Shown
	case p.Shown != ".":
		found = strings.TrimSuffix(filepath.ToSlash(p.Shown), "/") + "/" + found
	}
	return text.Name(found)
}

func unreadableNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[files or directories that could not be read: %d]\n", n)
}

// searchError words the error of a walk.
func searchError(ctx context.Context, p fsys.Path, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fsys.Describe(p.Shown, err)
}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Include string `json:"include"`
}

func (b *base) fsGrep() tool.Tool {
	params := []param{
		{name: "pattern", kind: "string", description: `Regular expression (RE2), such as func\s+\w+Error or (?i)todo. It is matched line by line.`, blank: true},
		{name: "path", kind: "string", description: "File or directory to search. Default is the working directory.", optional: true},
		{name: "include", kind: "string", description: "Glob pattern of the files to search, such as *.go or src/**/*.{ts,tsx}.", optional: true},
	}
	return &native{
		name: "fs_grep",
		description: "Search the contents of files with a regular expression. Returns at most 50 matching lines as 'path:number:text', sorted by path. " +
			"Binary files, files that .gitignore and .ignore name, and generated files and directories such as node_modules, vendor and *.min.js are left out.",
		params: params,
		hints:  tool.Hints{ReadOnly: true},
		run: run(params, func(ctx context.Context, args grepArgs, call tool.Call) (tool.Result, error) {
			if args.Pattern == "" {
				return tool.Result{}, fmt.Errorf("argument %q is empty", "pattern")
			}
			return b.readAt(call, cmp.Or(args.Path, "."), func(p fsys.Path) (string, error) {
				files := func(path string) bool { return !isGenerated(path[strings.LastIndexByte(path, '/')+1:]) }
				if args.Include != "" {
					g, err := tree.Compile(p.Real, strings.TrimPrefix(args.Include, "./"))
					if err != nil {
						return "", err
					}
					named := isGenerated(args.Include) // the model asks for them
					skip := files
					files = func(path string) bool { return g.Match(path) && (named || skip(path)) }
				}
				return grepFiles(ctx, p, args.Pattern, func(path string) bool { return files(path) && !isHidden(call.Hidden, p, path) })
			})
		}),
	}
}

// grepFiles searches and words the result.
func grepFiles(ctx context.Context, p fsys.Path, pattern string, files func(string) bool) (string, error) {
	if info, err := os.Stat(p.Real); err != nil {
		return "", fsys.Describe(p.Shown, err)
	} else if !info.IsDir() && !info.Mode().IsRegular() {
		return "", fsys.Irregular(p.Shown, info.Mode())
	}
	found, err := grep.Search(ctx, p.Real, grep.Query{
		Expr:     pattern,
		Tree:     tree.Walker{SkipDir: skippedByGrep},
		File:     files,
		MaxLines: maxGrep,
		MaxBytes: maxLineBytes,
	})
	if err != nil {
		return "", searchError(ctx, p, err)
	}
	var out strings.Builder
	for _, l := range found.Lines {
		fmt.Fprintf(&out, "%s:%d:%s", joinShown(p, l.Path), l.Number, l.Text)
		if l.Cut > 0 {
			fmt.Fprintf(&out, " [%d more bytes of this line]", l.Cut)
		}
		out.WriteByte('\n')
	}
	switch {
	case len(found.Lines) == 0:
		fmt.Fprintf(&out, "[nothing matches in %s]\n", p.Shown)
	case found.More:
		fmt.Fprintf(&out, "[more lines match than these %d; a narrower pattern, path or include shows them]\n", maxGrep)
	}
	return out.String() + unreadableNote(found.Unreadable), nil
}
