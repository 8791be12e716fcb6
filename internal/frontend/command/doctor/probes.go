package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver

	"loki/internal/agent/harness"
	"loki/internal/agent/workspace"
	"loki/internal/agent/workspace/skill"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text"
	"loki/internal/llm/catalog"
	"loki/internal/llm/event"
	"loki/internal/llm/provider"
	"loki/internal/setup/clients"
	"loki/internal/setup/config"
	"loki/internal/tool/mcp"
)

// probes returns the probes of this installation.
func (e exam) probes() []probe {
	probes := []probe{of("model", localLimit, e.model)}
	if e.opts.Ask {
		probes = append(probes, of("answer", localLimit, func(ctx context.Context, c *Check) {
			if !c.failed(e.app.Models.TryModel(ctx)) {
				c.Detail = "the default model answers"
			}
		}))
	}
	for _, client := range e.app.Config.Clients {
		probes = append(probes, of("client:"+client.Name, listLimit, func(ctx context.Context, c *Check) { e.client(ctx, c, client) }))
	}
	probes = append(probes, of("mcp", localLimit, e.servers))
	if file, err := e.app.MCP.ServerFile(); err == nil {
		for _, s := range file.Servers {
			if !s.Disabled {
				probes = append(probes, of("mcp:"+s.ID, startLimit, func(ctx context.Context, c *Check) { e.server(ctx, c, s) }))
			}
		}
	}
	if !e.broken {
		for _, p := range e.app.Programs() {
			one := of("agent:"+p.Agent, startLimit, func(ctx context.Context, c *Check) { e.program(ctx, c, p) })
			one.late = Warn
			probes = append(probes, one)
		}
	}
	for _, level := range sandbox.Levels() {
		probes = append(probes, of("sandbox:"+string(level), localLimit, func(ctx context.Context, c *Check) { e.level(ctx, c, level) }))
	}
	for _, file := range []string{filepath.Join(e.app.Paths.StateDir, "runs.db"), filepath.Join(e.app.Paths.CacheDir, "search.db")} {
		p := of(filepath.Base(file), localLimit, func(ctx context.Context, c *Check) { database(ctx, c, file) })
		p.late = Warn // it is large
		probes = append(probes, p)
	}
	return append(probes,
		of("store", listLimit, e.store), of("sessions", localLimit, e.sessions), of("space", listLimit, e.space), of("vault", localLimit, e.vault),
		of("git", listLimit, e.git), of("editor", listLimit, e.editor), of("trust", localLimit, e.trust), of("instructions", localLimit, e.instructions),
		of("ignore", localLimit, e.checkIgnoreFiles), of("skills", localLimit, e.skills))
}

// config checks a configuration that could be read.
func (e exam) config(c *Check) {
	cfg := e.app.Config
	if c.set(OK, cfg.File, ""); !cfg.Exists {
		c.Detail = "there is no " + cfg.File + ", so the defaults count"
	}
	problems := e.app.Notices.Take()
	src, _ := os.ReadFile(cfg.File) // that it can be read is known
	keys := slices.ContainsFunc(cfg.Clients, func(client *config.Client) bool {
		return slices.ContainsFunc(client.Credentials(e.app.Env), func(v config.Var) bool { return strings.Contains(string(src), v.Value) })
	})
	hint := ""
	for file, secret := range map[string]bool{cfg.File: keys, e.app.Paths.EnvFile: true, e.app.Paths.VaultFile: true, e.app.Paths.MCPFile(): false} {
		info, err := os.Stat(file)
		if err != nil || runtime.GOOS == "windows" {
			continue
		}
		mode := info.Mode().Perm()
		if mode&0o022 != 0 || secret && mode&0o044 != 0 {
			problems = append(problems, fmt.Sprintf("others can use %s: its mode is %04o", file, mode))
			hint = "chmod 600 " + text.Word(file)
		}
	}
	slices.Sort(problems)
	c.report(problems, hint)
}

// needsConfig skips a check whose settings are in a configuration that cannot be read.
func (e exam) needsConfig(c *Check) bool {
	if e.broken {
		c.set(Skip, "the configuration cannot be read", "")
	}
	return e.broken
}

func (e exam) model(_ context.Context, c *Check) {
	if e.needsConfig(c) {
		return
	}
	m, err := e.app.Catalog.Resolve(e.app.Config.Model, catalog.Chat)
	if c.failed(err) {
		return
	}
	if c.Detail = m.ID(); e.app.Catalog.Retirement(m) != "" {
		c.set(Warn, e.app.Catalog.Retirement(m), "choose another one: loki --setup")
	}
}

// client asks the server of a client for its models.
func (e exam) client(ctx context.Context, c *Check, client *config.Client) {
	if e.needsConfig(c) {
		return
	}
	names, err := e.app.Models.ListModels(ctx, client.Name)
	refusal, _ := errors.AsType[*provider.Error](err)
	switch {
	case errors.Is(err, clients.ErrNoList):
		hint := "loki --doctor --ask sends a question to the default model"
		if e.opts.Ask {
			hint = ""
		}
		c.set(Skip, err.Error(), hint)
	case refusal != nil && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusMethodNotAllowed):
		c.set(Warn, "the server answers, but has no list of models at this address: "+err.Error(), "check api_base of client "+client.Name)
	case !c.failed(err):
		c.Detail = "the server answers with " + text.Count(len(names), "model")
		m, err := e.app.Catalog.Resolve(e.app.Config.Model, catalog.Chat)
		if err != nil || m.Client != client.Name || len(names) == 0 {
			return
		}
		real := cmp.Or(m.RealName, m.Name)
		if !slices.ContainsFunc(names, func(name string) bool { return name == real || strings.HasPrefix(name, real+":") }) {
			c.set(Warn, fmt.Sprintf("the server does not list the default model %s", real), "see what there is: loki --list models; change it: loki --setup")
		}
	}
}

// servers checks mcp.json.
func (e exam) servers(_ context.Context, c *Check) {
	file, err := e.app.MCP.ServerFile()
	if c.failed(err) {
		return
	}
	if len(file.Servers) == 0 {
		c.set(Skip, "there are no MCP servers", "")
		return
	}
	c.Detail = text.Count(len(file.Servers), "server") + " in " + file.Path
	var problems []string
	for _, w := range file.Warnings {
		problems = append(problems, w.String())
	}
	c.report(problems, "")
}

func (e exam) server(ctx context.Context, c *Check, s mcp.Server) {
	if !c.failed(e.app.MCP.Try(ctx, s)) {
		c.Detail = "it starts and answers"
	}
}

// program starts the program of others that an agent is, where something holds it.
func (e exam) program(ctx context.Context, c *Check, p *harness.Program) {
	if c.failed(p.CheckInstalled()) {
		return
	}
	if c.Detail = p.Path; !p.Confined() {
		c.set(Skip, p.Path+" is not started without a sandbox", "")
		return
	}
	version, err := p.Check(ctx)
	if c.failed(err) {
		if c.Hint == "" && p.Install != "" {
			c.Hint = "install the version that was tested: " + p.Update()
		}
		return
	}
	c.Detail = strings.TrimSpace(p.Path + " " + version)
	if age := p.Age(version); age != "" {
		c.set(Warn, age, "update it: "+p.Update())
	}
}

func (e exam) level(ctx context.Context, c *Check, level sandbox.Level) {
	support, err := e.app.TryLevel(ctx, level)
	if c.failed(err) {
		return
	}
	if c.Detail = "a program runs"; level == sandbox.Full {
		c.Detail += ", unconfined"
		return
	}
	c.Detail += " in " + support.How
	if support.Missing != "" {
		c.set(Warn, "a program runs, but it is not fully confined: "+support.Missing, "")
	}
}

// database checks a file of SQLite, without a file beside it as far as SQLite allows that.
func database(ctx context.Context, c *Check, path string) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		c.set(Skip, "there is none yet", "")
		return
	}
	if c.failed(err) {
		return
	}
	how := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(2000)"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		how.Set("immutable", "1")
	}
	u := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/"), RawQuery: how.Encode()}
	db, err := sql.Open("sqlite", u.String())
	var found string
	if err == nil {
		defer db.Close()
		err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		found = err.Error()
		fallthrough
	case err == nil && found != "ok":
		c.set(Fail, fmt.Sprintf("%s is damaged: %s", path, found), "move it away, or restore it from a copy; a new one is made")
	case err != nil:
		c.failed(err)
	default:
		c.Detail = fmt.Sprintf("%s, %.1f MB", path, float64(info.Size())/1e6)
	}
}

// store checks the database that the setting store names.
func (e exam) store(ctx context.Context, c *Check) {
	db, err := e.app.Database()
	switch {
	case c.failed(err):
	case db == nil:
		c.set(Skip, "sessions and runs are in files", "")
	case !c.failed(db.Pool().Ping(ctx)):
		c.Detail = "the database answers"
	}
}

// sessions reads the sessions, the newest first.
func (e exam) sessions(ctx context.Context, c *Check) {
	var mu sync.Mutex
	var problems []string
	add := func(problem string) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, problem)
	}
	ctx = event.NewContext(ctx, e.app.Events(event.Func(func(_ context.Context, ev event.Event) error {
		if w, ok := ev.Body.(event.Warning); ok {
			add(w.Text)
		}
		return nil
	})))
	store, err := e.app.Sessions()
	if c.failed(err) {
		return
	}
	scopes, err := e.app.SessionScopes()
	if c.failed(err) {
		return
	}
	n := 0
	for _, scope := range scopes {
		list, err := store.List(ctx, scope)
		if c.failed(err) {
			return
		}
		n += len(list)
		for _, m := range list {
			if m.Size == 0 || ctx.Err() != nil { // one of an older version would be converted
				continue
			}
			if _, err := store.Open(ctx, scope, m.ID); err != nil && ctx.Err() == nil {
				add(err.Error())
			}
		}
	}
	c.Detail = text.Count(n, "session")
	c.report(problems, "")
}

// The free space below which a check warns and fails, in bytes.
const (
	littleSpace = 200 << 20
	noSpace     = 10 << 20
)

// space checks the directories that the program writes in.
func (e exam) space(_ context.Context, c *Check) {
	p := e.app.Paths
	least := int64(-1)
	for _, dir := range []string{p.ConfigDir, p.StateDir, p.CacheDir, p.SessionsDir} {
		there, err := existingDir(dir)
		if err == nil {
			err = writable(there)
		}
		if err != nil {
			c.set(Fail, fmt.Sprintf("cannot write in %s: %v", dir, err), "")
			return
		}
		if free, ok := freeSpace(there); ok && (least < 0 || free < least) {
			least = free
			c.Detail = fmt.Sprintf("%.1f GB are free for %s", float64(free)/1e9, dir)
		}
	}
	if least >= 0 && least < littleSpace {
		if c.Status = Warn; least < noSpace {
			c.Status = Fail
		}
		c.Hint = "free some space; loki --runs-prune --older 30d forgets old runs"
	}
}

// existingDir returns a directory, or the nearest one above it that exists.
func existingDir(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", dir)
		case err == nil || !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return dir, err
		}
		dir = filepath.Dir(dir)
	}
}

// vault opens the vault with its password.
func (e exam) vault(ctx context.Context, c *Check) {
	if e.needsConfig(c) {
		return
	}
	v := e.app.Vault()
	names, err := v.List(ctx)
	if c.failed(err) {
		return
	}
	if len(names) == 0 {
		c.set(Skip, "it is empty", "")
		return
	}
	for _, name := range names {
		if _, err := v.Get(ctx, name); c.failed(err) {
			return
		}
	}
	c.Detail = text.Count(len(names), "secret") + ", opened with " + v.Holder()
	c.report(e.app.Notices.Take(), "")
}

func (e exam) git(ctx context.Context, c *Check) {
	path, err := exec.LookPath("git")
	if err != nil {
		c.set(Warn, "git is not installed, or not in PATH", "bundles, and the history of files for models, need it")
		return
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = e.app.Child().Environ
	out, err := cmd.Output()
	if !c.failed(err) {
		c.Detail = strings.TrimSpace(string(out))
	}
}

func (e exam) editor(_ context.Context, c *Check) {
	words, err := e.opts.Editor(e.app)
	if err != nil {
		c.set(Warn, err.Error(), fault.HintOf(err))
		return
	}
	c.Detail = words[0]
}

// trust checks the record of trusted directories, and names the files here that are not trusted.
func (e exam) trust(_ context.Context, c *Check) {
	records, err := e.app.Trust.Store().List()
	if c.failed(err) {
		return
	}
	c.Detail = text.Count(len(records), "trusted directory")
	dir, err := os.Getwd()
	if c.failed(err) {
		return
	}
	files := e.app.Instructions().Read(dir).Unknown()
	for _, s := range e.app.Skills("").Find() {
		files = append(files, s.Unknown()...)
	}
	var problems []string
	for _, f := range files {
		problems = append(problems, fmt.Sprintf("%s is %s, so models do not get it", f.Name, f.State))
	}
	c.report(problems, "review it, then: loki --trust .")
}

func (e exam) instructions(ctx context.Context, c *Check) {
	dir, err := os.Getwd()
	if c.failed(err) {
		return
	}
	in := e.app.Instructions().Read(dir)
	all, err := in.All(ctx)
	if c.failed(err) {
		return
	}
	c.Detail = text.Count(len(all), "file")
	for _, f := range all {
		if f.State == workspace.Unusable && !slices.ContainsFunc(in.Files, func(other workspace.File) bool { return other.Path == f.Path }) {
			in.Files = append(in.Files, f)
		}
	}
	c.report(in.Findings(), "loki --list instructions shows all files")
}

func (e exam) checkIgnoreFiles(_ context.Context, c *Check) {
	list := e.app.IgnoreFiles().List()
	c.Detail = text.Count(len(list), "file")
	var problems []string
	for _, f := range list {
		for _, one := range f.Findings {
			place := one.File
			if one.Line > 0 {
				place = fmt.Sprintf("%s:%d", one.File, one.Line)
			}
			problems = append(problems, place+" "+one.Problem)
		}
	}
	c.report(problems, "loki --list ignore shows all files")
}

func (e exam) skills(_ context.Context, c *Check) {
	all := e.app.Skills("").Find()
	c.Detail = text.Count(len(skill.Usable(all)), "skill") + " can be used"
	var problems []string
	for _, s := range all {
		for _, p := range s.Findings {
			problems = append(problems, p.Text())
		}
	}
	c.report(problems, "loki --validate DIR checks a skill")
}
