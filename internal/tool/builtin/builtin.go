// Package builtin holds the tools that are part of the program. They are written in Go
// and need no other program, except that execute_py_code needs a Python and
// execute_sql_code needs usql for databases other than SQLite.
//
// Relative paths start from the directory of the tools. A path that is written inside
// this directory may lead out of it through a symbolic link: tools that change something
// refuse such a path, and tools that read report it.
package builtin

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"runtime"
	"time"

	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
	"loki/internal/tool"
	"loki/internal/tool/builtin/fsys"
)

// Options configure Tools. The zero value of each field is its default.
type Options struct {
	// Child is the environment of programs that tools start; if entries have the same
	// name, the last one wins. A nil environment means that of this process.
	Child environ.Child
	// Getenv returns the settings and keys of tools, such as TAVILY_API_KEY, empty for
	// one that is not set. Nil looks them up in Environ. It may be called from several
	// goroutines.
	Getenv func(name string) string
	// Dir is the directory of the tools; empty means that of this process.
	Dir string
	// Sandbox confines the programs of execute_command and execute_py_code, at the level that a call has; nil confines
	// nothing.
	Sandbox *sandbox.Sandbox
	// CommandTimeout bounds execute_command, execute_py_code and execute_sql_code; 0
	// means [tool.DefaultTimeout].
	CommandTimeout time.Duration
	// Locks serializes concurrent edits of one file. A caller that makes tools more than
	// once in a process should pass the same Locks each time; nil means Locks for the
	// tools of this call only.
	Locks *fsys.Locks

	// Client is what an editor does for tools; the zero value does nothing.
	Client Client

	// Ask puts a query to a model, which may be empty for the default one, and returns
	// its reply. The model is expected to search the web. If Ask is nil,
	// web_search_loki returns an error.
	Ask func(ctx context.Context, model, query string) (string, error)

	// HTTP is the transport to the services that tools use, but not to the pages that
	// fetch_url_via_curl gets. Nil means one that takes proxies from Getenv.
	HTTP http.RoundTripper
	// TLS is used where tools speak TLS other than HTTP; nil means the system's
	// certificates.
	TLS *tls.Config
	// Services overrides the addresses of services.
	Services Services
	// Now is the clock of get_current_time and of the dates of mails; nil means time.Now.
	Now func() time.Time
}

// Client is what an editor does for tools. Its functions may be called from several goroutines.
type Client struct {
	Files fsys.Files // has the files of the editor; nil for none
	// Terminal runs a command in a terminal of the editor and returns what it printed. Nil means that commands run here.
	Terminal func(ctx context.Context, call tool.Call, c process.Command) (tool.Result, error)
}

// Services are the base addresses of the services behind tools, without a slash at the
// end. An empty one means the public service.
type Services struct {
	Arxiv, Jina, Perplexity, Tavily, Twilio, Weather, Wikipedia, Wolfram string
}

// Tools returns the tools, in the order of their names. It costs next to nothing: what a
// tool needs is looked for when it is called.
func Tools(o Options) []tool.Tool {
	if o.Child.Environ == nil {
		o.Child.Environ = os.Environ()
	}
	if o.Getenv == nil {
		o.Getenv = lookup(o.Child.Environ)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Locks == nil {
		o.Locks = new(fsys.Locks)
	}
	b := &base{Options: o, root: fsys.Root{Dir: o.Dir, Home: home(o.Getenv), Locks: o.Locks, Files: o.Client.Files}}
	return []tool.Tool{
		&executeCommand{confiner: confiner{o.Sandbox}, shell: process.FindShell(runtime.GOOS, lookup(o.Child.Environ), nil), child: o.Child, dir: o.Dir, timeout: o.CommandTimeout, terminal: o.Client.Terminal},
		b.executePyCode(),
		b.executeSQLCode(),
		b.fetchURLViaCurl(),
		b.fetchURLViaJina(),
		b.fsCat(),
		b.fsGlob(),
		b.fsGrep(),
		b.fsLs(),
		b.fsMkdir(),
		b.fsPatch(),
		b.fsRead(),
		b.fsRm(),
		b.fsWrite(),
		b.currentTime(),
		b.currentWeather(),
		b.searchArxiv(),
		b.searchWikipedia(),
		b.searchWolfram(),
		b.sendMail(),
		b.sendTwilio(),
		b.webSearchLoki(),
		b.webSearchPerplexity(),
		b.webSearchTavily(),
	}
}

// base is what the tools share.
type base struct {
	Options
	root fsys.Root
}

// rootOf returns the root with which a call works: its paths lead where they did when it was judged.
func (b *base) rootOf(call tool.Call) fsys.Root {
	root := b.root
	root.Judged = call.Judged
	return root
}

// home is the directory that ~ means, empty if it is not known.
func home(getenv func(string) string) string {
	if runtime.GOOS == "windows" {
		return getenv("USERPROFILE")
	}
	return getenv("HOME")
}

// lookup returns a function that finds variables in list.
func lookup(list []string) func(name string) string {
	return func(name string) string { return environ.Get(list, name) }
}

// exitError returns the error of a tool's program that ended with exit. Its note names
// variables that were withheld from a program that complained.
func exitError(name string, exit *process.ExitError, child environ.Child, code string) error {
	e := &tool.ExitError{Tool: name, Code: exit.Code, Signal: exit.Signal}
	if exit.Stderr != "" {
		e.Note = child.Note("the user can list what programs may have under permission.keep_env in config.yaml", exit.Stderr, code)
	}
	return e
}
