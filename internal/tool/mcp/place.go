package mcp

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/text"
)

// Code is a part of an entry by which a program takes code from the workspace.
type Code struct {
	Entry string // as in mcp.json, such as "cwd ."
	Dir   string // the directory that the code belongs to, absolute
}

// TakingCode returns the ids of the servers that take code from the workspace of o, or from a directory in it. Secrets are not looked up.
func (f *File) TakingCode(o *Options) (ids []string) {
	unlocked := *o
	unlocked.Secrets = func(name string) (string, error) { return "{{" + name + "}}", nil }
	for _, s := range f.Servers {
		r, err := s.resolve(&unlocked)
		if s.Err != nil || s.Disabled || err != nil {
			continue
		}
		if at, err := r.place(o); err == nil && len(at.code) > 0 {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// placed is where the program of a server starts, and with what.
type placed struct {
	dir  string // working directory
	args []string
	env  []string
	own  bool // dir is the server's own, see [Options].Own
	code []Code
}

// place decides where a program starts. It gets a directory of its own, so that it takes no code from the workspace by accident:
// python -m, npx and the like look in their working directory first. Arguments that name a file or directory of the workspace
// are made absolute for that, as far as they are not the code that the program runs. An entry with relative code starts in the
// workspace, and one with a cwd there; whether it may take the code is for the caller to decide.
func (r resolved) place(o *Options) (placed, error) {
	p := placed{dir: r.Dir, args: r.Args, env: environ.Merge(o.Child.Environ, r.Env)}
	if err := r.oneProgram(o, p.env); err != nil {
		return p, err
	}
	if o.Own == nil || o.Dir == "" || r.Type != Stdio {
		if p.dir == "" {
			p.dir = o.Dir
		}
		return p, nil
	}
	w := workspace{root: o.Dir, base: o.Dir, holds: environ.Inside(o.Dir, o.Kept), rewrite: p.dir == ""}
	if p.dir != "" {
		if w.base = w.path(p.dir); w.holds(w.base) {
			p.code = append(p.code, Code{"cwd " + r.Dir, w.project(w.base)})
		}
		p.dir = w.base
	}
	p.env, _ = environ.Apart(o.Child.Environ, o.Dir, o.Kept)
	own, names := environ.Apart(environ.Merge(nil, r.Env), o.Dir, o.Kept)
	for _, name := range names {
		if name == "PATH" { // which usually has the one of the user in it
			continue
		}
		p.code = append(p.code, Code{"env " + name, w.project(cmp.Or(p.dir, o.Dir))})
		own = append(own, name+"="+r.Env[name])
	}
	p.env = append(p.env, own...)
	if strings.ContainsAny(r.Command, `/\\`) {
		w.uses("command "+r.Command, r.Command)
	} else if found, err := process.Find(r.Command, p.env); err == nil {
		w.uses("command "+r.Command, found) // by a link
	}
	w.args = slices.Clone(r.Args)
	w.sort(r.Command, w.args)
	p.code = append(p.code, w.code...)
	switch {
	case p.dir != "":
	case w.relative:
		p.dir = o.Dir
		p.code = append(p.code, Code{"its working directory", w.project(o.Dir)})
	default:
		var err error
		if p.dir, err = o.Own(r.slug); err != nil {
			return p, err
		}
		p.own, p.args = true, w.args
	}
	for i := range p.code { // trust in a directory is trust in what is below it
		for _, other := range p.code {
			if environ.Inside(other.Dir, nil)(p.code[i].Dir) {
				p.code[i].Dir = other.Dir
			}
		}
	}
	set := map[string]string{"PWD": p.dir}
	if len(p.code) > 0 { // bytecode beside the code is not part of what is trusted
		cache, err := o.Own(r.slug)
		if err != nil {
			return p, err
		}
		set["PYTHONPYCACHEPREFIX"] = filepath.Join(cache, "pycache")
	}
	p.env = environ.Merge(p.env, set, "OLDPWD", "INIT_CWD")
	return p, nil
}

// oneProgram returns an error if the command is a whole command line: it is not a program, and its first word is one.
func (r resolved) oneProgram(o *Options, env []string) error {
	words := strings.Fields(r.redact(r.Command))
	w := workspace{base: o.Dir}
	w.base = w.path(r.Dir)
	there := func(name string) bool {
		path, err := process.Find(name, env)
		return err == nil && exists(w.path(path))
	}
	if r.Type != Stdio || len(words) < 2 || there(r.Command) || !there(words[0]) {
		return nil
	}
	return fault.New(fault.Config, "%s: server %q: the command %q is a whole command line; command is one program, and the rest belongs in args", r.file, r.ID, text.OneLine(r.redact(r.Command), 200)).
		WithHint(`"command": "%s", "args": ["%s"]`, words[0], strings.Join(words[1:], `", "`))
}

// workspace is the directory that a model writes in, as the words of an entry lead there.
type workspace struct {
	root     string
	base     string // of relative words
	holds    func(path string) bool
	rewrite  bool // words that are data are made absolute
	args     []string
	code     []Code
	relative bool // code is named by a relative path
}

// path returns the absolute path that a word means.
func (w *workspace) path(word string) string {
	if filepath.IsAbs(word) {
		return filepath.Clean(word)
	}
	return filepath.Join(w.base, word)
}

// uses notes that code is at the path that a word means, if that is in the workspace.
func (w *workspace) uses(entry, word string) {
	path := w.path(word)
	if !w.holds(path) {
		return
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	w.code = append(w.code, Code{entry, w.project(path)})
	w.relative = w.relative || !filepath.IsAbs(word)
}

// project returns the directory of the project that a file or directory belongs to: the topmost one that has dependencies or
// declares a project, since runners look up the tree, or else its own. The home directory and those above it are no projects.
func (w *workspace) project(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		path = filepath.Dir(path)
	}
	home, _ := os.UserHomeDir() // without one, a project can be anywhere
	isHome := func(dir string) bool { return home != "" && environ.Inside(dir, nil)(home) }
	for dir := filepath.Dir(path); dir != filepath.Dir(dir) && !isHome(dir); dir = filepath.Dir(dir) {
		for _, name := range projectFiles {
			if exists(filepath.Join(dir, name)) {
				path = dir
			}
		}
	}
	return path
}

// projectFiles are what runners look for in the directory of the code and in those above it.
var projectFiles = strings.Fields("package.json node_modules pyproject.toml uv.toml go.mod go.work Cargo.toml deno.json deno.jsonc bunfig.toml")

// explicit reports whether a word is a relative path whatever there is: ., .., ./x and ../x.
func explicit(word string) bool {
	head, _, _ := strings.Cut(filepath.ToSlash(word), "/")
	return head == "." || head == ".."
}

// sort goes through the words of a command line. It notes words that name code in the workspace, and makes others, which name files
// or directories of it, absolute.
//
// A program that is not among [runners] is a server itself, and its words are data, but for files that can be code. Of a runner the
// words up to the package or script are code. A runner among the words of another program, such as env, begins anew.
func (w *workspace) sort(command string, args []string) {
	run, known := runners[programName(command)]
	main, opaque := -1, false // the last word that is code
	if known {
		main, opaque = run.main(args)
	}
	for i, word := range args {
		if i > main && !run.words && i+1 < len(args) {
			if next, nested := runners[programName(word)]; nested && (!known || run.packages || next.packages) {
				w.sort(word, args[i+1:])
				return
			}
		}
		option, place := "", word
		if strings.HasPrefix(word, "-") {
			name, value, ok := strings.Cut(word, "=")
			if !ok {
				continue
			}
			option, place = name, value
		}
		if i <= main && filepath.IsAbs(place) && (slices.Contains(directions, option) || option == "" && i > 0 && slices.Contains(directions, args[i-1])) {
			w.base, w.rewrite = place, false // the program goes there before all else
		}
		switch {
		case strings.ContainsAny(word, " \n") && strings.Contains(word, w.root): // a text for a shell
			w.code = append(w.code, Code{text.OneLine(word, 60), w.project(w.root)})
		case strings.HasPrefix(option, "--allow-"): // of deno
			w.data(i, args, option, place, true)
		case i > main:
			w.data(i, args, option, place, run.words)
		case i == main && opaque:
		default:
			w.choice(word, place, run.packages)
		}
	}
}

// directions are options by which a program goes to another directory before it looks for code.
var directions = strings.Fields("--directory --project --cwd --dir --prefix -C --chdir --workdir")

// choice notes a word that is, or leads to, the code that a runner runs. A package is a path only if it looks like one.
func (w *workspace) choice(word, place string, packages bool) {
	place = strings.TrimPrefix(strings.TrimPrefix(place, "git+"), "file:")
	if i := strings.LastIndex(place, "//"); i >= 0 {
		place = place[i+1:]
	}
	if filepath.IsAbs(place) || explicit(place) || exists(w.path(place)) && (!packages || strings.HasSuffix(place, ".py")) {
		w.uses(word, place)
	}
}

// data makes a word absolute that is data, the value of an option or the whole of args[i]. Only words that are clearly paths count
// if strict is set.
func (w *workspace) data(i int, args []string, option, place string, strict bool) {
	tail := ""
	if head, rest, ok := strings.Cut(place, ":"); ok && explicit(head) { // as in docker run -v .:/data
		place, tail = head, ":"+rest
	}
	clear := explicit(place)
	switch path := w.path(place); {
	case place == "", strings.Contains(place, "://"):
	case !filepath.IsAbs(place) && !clear && (strict || !w.holds(path) || !exists(path)):
	case w.holds(path) && isCode(path):
		w.uses(args[i], place)
	case w.rewrite && !filepath.IsAbs(place):
		if option != "" {
			option += "="
		}
		args[i] = option + path + tail
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isCode reports whether a file can be code: its name does not end like that of data.
func isCode(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	return !slices.Contains(dataEndings, strings.ToLower(strings.TrimPrefix(filepath.Ext(path), ".")))
}

// dataEndings are the endings of files that are not code.
var dataEndings = strings.Fields(`json jsonl ndjson json5 jsonc yaml yml toml ini cfg conf config env properties csv tsv txt text md rst log xml html htm css svg
	db db3 sqlite sqlite3 duckdb parquet arrow pdf docx xlsx pptx odt ods png jpg jpeg gif webp mp3 mp4 wav pem crt cer key p12 pub kubeconfig graphql proto sql zip gz tar`)

// programName returns the name of a program without its directory, the ending of Windows and the version of an interpreter.
func programName(command string) string {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ending)
	}
	return strings.TrimRight(name, "0123456789.-")
}

// runner is a program that runs code which its words name.
type runner struct {
	packages bool   // the code is a package: a word without a directory is never a file
	words    bool   // all words are data, and paths only if they are clearly so
	commands string // words in front of the code, such as "tool run"
	valued   string // options that have the next word as their value or, of a runner of packages, options that have not
	texts    string // options after which the next word is the code, as a text or a name
}

// runners are programs that run code, by their names without a version.
//
// Source: their manuals. npm exec, uv tool run and pipx run take a name without a directory from a registry.
var runners = func() map[string]runner {
	all := make(map[string]runner)
	add := func(names string, r runner) {
		for _, name := range strings.Fields(names) {
			all[name] = r
		}
	}
	const flags = ` -y --yes -q --quiet -s --silent --script --no --no-install --offline --prefer-offline --prefer-online --ignore-existing --bun --verbose -v
		--force --isolated --no-cache --refresh --upgrade -U --no-config --no-env-file --native-tls --system-certs --no-progress --managed-python
		--no-managed-python --no-project --no-index --reinstall --no-build --no-binary --system-site-packages --locked --frozen --all-extras
		--no-dev --no-sync --active --exact --no-editable --ignore-scripts --no-audit --no-fund `
	add("npx bunx pnpx uvx", runner{packages: true, valued: flags, texts: "-c --call"})
	add("npm pnpm yarn bun corepack", runner{packages: true, commands: "exec x dlx run run-script npx pnpm yarn", valued: flags, texts: "-c --call"})
	add("uv pipx", runner{packages: true, commands: "run tool", valued: flags, texts: "-m --module"})
	add("docker podman nerdctl", runner{words: true})
	add("python pypy pythonw py", runner{valued: "-W -X", texts: "-m -c"})
	add("node nodejs tsx ts-node", runner{valued: "-r --require --import --loader --experimental-loader -C --conditions --env-file --title --tsconfig --project", texts: "-e --eval -p --print -c"})
	add("deno", runner{commands: "run serve task", valued: "-c --config --import-map --lock --cert -L --log-level --env-file --location --seed", texts: "-e eval"})
	add(`go cargo dotnet mvn gradle sbt mix rake make gmake just task ninja bundle composer hatch poetry pdm rye pixi conda mamba stack cabal dune swift
		zig nim nix nix-shell nix-run`, runner{commands: "run exec", valued: "-C -f --file --directory --manifest-path --project -p --package --bin -n --name"})
	add("java", runner{valued: "-cp -classpath --class-path -p --module-path --add-modules", texts: "-m --module"})
	add(`ruby perl php lua luajit rscript r julia elixir erl escript groovy scala kotlin clojure clj bb racket guile sbcl ocaml runghc tclsh wish awk gawk
		mawk pwsh powershell osascript wasmtime wasmer mono cscript wscript`, runner{valued: "-r -I -M -d -l -L -f -C -W -X -file", texts: "-e -E -c -command"})
	add("sh bash dash zsh ksh fish csh tcsh nu busybox cmd", runner{valued: "-o -O --rcfile --init-file", texts: "-c -lc -ic -lic -ec /c /k"})
	return all
}()

// main returns the place of the package or script in the words of a runner, the last word if there is none. opaque is set if it is
// a text or a name.
func (r runner) main(args []string) (main int, opaque bool) {
	if r.words {
		return -1, false
	}
	has := func(list, word string) bool { return slices.Contains(strings.Fields(list), word) }
	for i := 0; i < len(args); i++ {
		word := args[i]
		name, _, attached := strings.Cut(word, "=")
		switch {
		case has(r.texts, word):
			return min(i+1, len(args)-1), true
		case word == "--", has(r.commands, word):
		case strings.HasPrefix(word, "-"):
			if !attached && has(r.valued, name) != r.packages {
				i++
			}
		default:
			return i, false
		}
	}
	return len(args) - 1, false
}
