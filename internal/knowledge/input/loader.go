package input

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"loki/internal/base/document"
	"loki/internal/base/fault"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/base/process/sandbox"
)

// Loader loads sources. The zero value of a field is its default. It may be used from
// several goroutines.
type Loader struct {
	Dir   string        // what relative paths are relative to; empty means the working directory
	Child environ.Child // what commands get
	// Programs is what document loaders and git get: they take no code from the workspace. Own returns a directory, which
	// neither a model nor a project writes in, for a document loader that is not confined; nil means Dir.
	Programs environ.Child
	Own      func(name string) (dir string, err error)
	Shell    process.Shell // runs `commands`; without a Path none can be run
	HTTP     *http.Client  // fetches addresses; nil means [http.DefaultClient]
	Reply    *string       // the reply before, nil without one

	// Loaders are commands that turn documents into text, by name: $1 in them is the
	// document, $2 a file to write to; without $2 the output counts. A loader serves
	// sources that begin with its name and a colon, and files with its name as extension.
	// One called url serves all addresses.
	Loaders map[string]string
	// Expand returns the command of a loader with what it refers to filled in, such as
	// secrets; nil leaves commands as they are.
	Expand func(name, command string) (string, error)

	// Sandbox returns what confines a loader that gets a file, which may be anybody's: it reads at the level sandbox.Read. What gets an
	// address or the like is not confined, as it has to fetch it. Nil confines none.
	Sandbox func() (*sandbox.Sandbox, error)

	// Denied returns an error for a file that must not be read, by its absolute path. One that is named is an error, and others are
	// skipped. Nil denies none. It may be called from several goroutines.
	Denied func(path string) error
	// Consented says that the user has consented to a file that a rule asks about, so that loaders see it.
	Consented bool

	UserAgent string // names the program to sites; empty means [DefaultUserAgent]

	// CommandTimeout bounds each command and loader; 0 means [DefaultCommandTimeout].
	CommandTimeout time.Duration
}

// DefaultCommandTimeout bounds commands and document loaders.
const DefaultCommandTimeout = 2 * time.Minute

// Load loads the sources, each once: first what commands print, then files, addresses,
// and what loaders make. An error names the source.
func (l *Loader) Load(ctx context.Context, sources []string) (Attachments, error) {
	c := collector{loader: l, seen: make(map[string]bool)}
	for _, pass := range []func(context.Context, *collector, string) error{l.reply, l.command, l.path, l.address, l.loadNamed} {
		for _, source := range sources {
			if err := ctx.Err(); err != nil {
				return Attachments{}, err
			}
			if err := pass(ctx, &c, source); err != nil {
				return Attachments{}, err
			}
		}
	}
	if c.missingReply && c.Empty() {
		return Attachments{}, fault.New(fault.Usage, "%%%% means the previous reply, and there is none yet").
			WithHint("a session has one: loki -s NAME -f %%%% ...")
	}
	return c.Attachments, nil
}

// collector gathers loaded documents within the limits.
type collector struct {
	Attachments
	loader       *Loader
	seen         map[string]bool // by kind and name
	total        int
	missingReply bool
}

// first reports whether the thing of this kind and name was not asked for before.
func (c *collector) first(kind Kind, name string) bool {
	key := string(kind) + " " + name
	if c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}

func (c *collector) count(size int) error {
	if c.total += size; c.total > MaxSize {
		return fault.New(fault.Usage, "the attachments hold more than %d MiB", MaxSize>>20)
	}
	return nil
}

func (c *collector) add(d Document) error {
	c.Documents = append(c.Documents, d)
	return c.count(len(d.Text))
}

func (c *collector) addImage(image Image) error {
	c.Images = append(c.Images, image)
	return c.count(len(image.URL))
}

// LastReply is the source that means the previous reply.
const LastReply = "%%"

func (l *Loader) reply(_ context.Context, c *collector, source string) error {
	if source == LastReply {
		c.Attachments.Reply, c.missingReply = l.Reply, l.Reply == nil
	}
	return nil
}

// commandOf returns the command between the backticks.
func commandOf(source string) (string, bool) {
	if len(source) > 2 && source[0] == '`' && source[len(source)-1] == '`' {
		return source[1 : len(source)-1], true
	}
	return "", false
}

func isAddress(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// loaderOf returns the loader that source names, and what it is to load.
func (l *Loader) loaderOf(source string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(source, ":")
	if !ok || isAddress(source) || !l.Converts(name) {
		return "", "", false
	}
	return name, rest, true
}

// AddressLoader is the name of the document loader that serves all addresses.
const AddressLoader = "url"

// HasLoader reports whether there is a document loader called name.
func (l *Loader) HasLoader(name string) bool { return l.Loaders[name] != "" }

// Converts reports whether documents with the extension ext, without the dot and in lower case, are
// converted to text: by a document loader, or by a reader of the program.
func (l *Loader) Converts(ext string) bool { return l.HasLoader(ext) || document.Reads(ext) }

// Convert returns what is read of a document with the extension kind, see [Loader.Converts].
func (l *Loader) Convert(ctx context.Context, kind, path string) (document.Content, error) {
	if l.HasLoader(kind) {
		text, err := l.RunLoader(ctx, kind, path)
		return document.Content{Text: text, Ext: "txt"}, err
	}
	if err := l.denyError(path); err != nil {
		return document.Content{}, err
	}
	data, err := readLimited(ctx, path, document.MaxSize)
	if err != nil {
		return document.Content{}, err
	}
	c, err := document.Text(ctx, kind, data)
	if err != nil {
		err = fault.Wrap(fault.Usage, err, "%s", path)
	}
	return c, err
}

// ConvertData is [Loader.Convert] for a document that is in no file.
func (l *Loader) ConvertData(ctx context.Context, kind string, data []byte) (document.Content, error) {
	if l.HasLoader(kind) {
		text, err := l.loadData(ctx, kind, data)
		return document.Content{Text: text, Ext: "txt"}, err
	}
	return document.Text(ctx, kind, data)
}

// Serves reports whether source is name:rest for a document loader.
func (l *Loader) Serves(source string) bool {
	_, _, ok := l.loaderOf(source)
	return ok
}

func (l *Loader) command(ctx context.Context, c *collector, source string) error {
	line, ok := commandOf(source)
	if !ok || !c.first(Command, line) {
		return nil
	}
	text, _, err := l.Output(ctx, line, func(string) {})
	if err != nil {
		return err
	}
	return c.add(Document{Kind: Command, Name: line, Text: text})
}

func (l *Loader) path(ctx context.Context, c *collector, source string) error {
	if !l.isPath(source) {
		return nil
	}
	return l.files(ctx, c, source)
}

// isPath reports whether source is a path or a pattern.
func (l *Loader) isPath(source string) bool {
	_, isCommand := commandOf(source)
	return source != LastReply && !isCommand && !isAddress(source) && !l.Serves(source)
}

func (l *Loader) address(ctx context.Context, c *collector, source string) error {
	if !isAddress(source) || !c.first(URL, source) {
		return nil
	}
	return l.fetch(ctx, c, source)
}

func (l *Loader) loadNamed(ctx context.Context, c *collector, source string) error {
	if !l.Serves(source) || !c.first(Loaded, source) {
		return nil
	}
	parts, err := l.LoadParts(ctx, source)
	if err != nil {
		return err
	}
	for _, part := range parts {
		c.unread(part.Path, part.Unread)
		if err := c.add(Document{Kind: Loaded, Name: part.Path, Text: part.Text}); err != nil {
			return err
		}
	}
	return nil
}

// FileOf returns the absolute path of the file that a source means, also with the name of a loader before it. A source of another
// kind gives a path at which there is most likely none.
func (l *Loader) FileOf(source string) string {
	if _, rest, ok := l.loaderOf(source); ok {
		source = rest
	}
	return l.Absolute(source)
}

// Absolute returns source as it can be read anywhere: a path is made absolute, others
// stay as they are.
func (l *Loader) Absolute(source string) string {
	if !l.isPath(source) {
		return source
	}
	path, err := l.abs(source)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return source
	}
	return path
}

// abs makes path absolute, with ~/ for the home directory.
func (l *Loader) abs(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fault.Wrap(fault.Usage, err, "%s", path)
		}
		return filepath.Join(home, rest), nil
	}
	if l.Dir != "" && !filepath.IsAbs(path) {
		return filepath.Join(l.Dir, path), nil
	}
	return filepath.Clean(path), nil
}

func (l *Loader) timeout() time.Duration { return cmp.Or(l.CommandTimeout, DefaultCommandTimeout) }

// processError returns the error of a failed command or loader in the terms of
// a user.
func processError(source string, err error) *fault.Error {
	if _, ok := errors.AsType[*process.StartError](err); ok {
		return fault.Wrap(fault.Tool, err, "%s", source).WithHint("is the program installed, and on the PATH?")
	}
	return fault.Wrap(fault.Tool, err, "%s", source)
}
