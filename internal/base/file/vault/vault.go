package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
)

// Options configures a [Vault].
type Options struct {
	File string // the vault file; required, need not exist

	// LegacyFile is read as long as there is no File. It is never written: the first
	// change makes a File. May be empty.
	LegacyFile string

	Password Password

	// Warn gets warnings for the user; nil drops them. It must not call the vault.
	Warn func(text string)
}

// Vault is a file of secrets. Its methods may be called from several goroutines, and
// several processes may use one file.
type Vault struct {
	opts       Options
	workFactor int // of scrypt, for a new key

	// turn is held by the goroutine that uses the fields below. It is a channel of one
	// place, because waiting for a password that a person types must be possible to
	// break off.
	turn     chan struct{}
	password *string
	sealed   string // the encrypted key that opened is the content of
	opened   *key
}

// New returns the vault of o. It touches nothing, so it may be made without need.
func New(o Options) *Vault {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Password.Keychain == nil {
		o.Password.Keychain = system{}
	}
	return &Vault{opts: o, workFactor: workFactor, turn: make(chan struct{}, 1)}
}

// File returns the path of the vault file.
func (v *Vault) File() string { return v.opts.File }

// Holder names the place of the password, for people.
func (v *Vault) Holder() string { return v.opts.Password.description() }

// List returns the names of all secrets, sorted. It needs no password.
func (v *Vault) List(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := v.read()
	if err != nil {
		return nil, v.border(err)
	}
	return slices.Sorted(maps.Keys(d.secrets)), nil
}

// Get returns the secret called name. The error wraps [ErrNotFound] if there is none, which
// needs no password either.
func (v *Vault) Get(ctx context.Context, name string) (string, error) {
	done, err := v.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	text, err := v.get(ctx, name)
	return text, v.border(err)
}

// Lookup returns a function that gets secrets under ctx, for places that have no context
// at hand: the settings of clients, whose values may refer to secrets.
func (v *Vault) Lookup(ctx context.Context) func(name string) (string, error) {
	return func(name string) (string, error) { return v.Get(ctx, name) }
}

// Add stores a new secret. The error wraps [ErrExists] if there is one of that name, and
// [ErrName] if no secret can be called that. An existing vault is not changed unless the
// password opens it.
func (v *Vault) Add(ctx context.Context, name, text string) error {
	return v.set(ctx, name, text, false)
}

// CanAdd returns the error of [Vault.Add] for a name that it would refuse. It needs no
// password.
func (v *Vault) CanAdd(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	names, err := v.List(ctx)
	if err == nil && slices.Contains(names, name) {
		err = errExists(name)
	}
	return err
}

func errExists(name string) error {
	return problem(fault.Usage, ErrExists, "secret %q", name).WithHint("loki --secret update %s", text.Word(name))
}

// Update stores a secret in place of the one of that name, if there is one.
func (v *Vault) Update(ctx context.Context, name, text string) error {
	return v.set(ctx, name, text, true)
}

// Delete removes the secret called name. It needs no password, since anyone who can write
// the file does not need for that either.
func (v *Vault) Delete(ctx context.Context, name string) error {
	return v.change(ctx, func(d *document) error {
		if _, ok := d.secrets[name]; !ok {
			return v.notFound(name).WithHint("list the secrets: loki --list secrets")
		}
		delete(d.secrets, name)
		return nil
	})
}

func (v *Vault) get(ctx context.Context, name string) (string, error) {
	d, err := v.read()
	if err != nil {
		return "", err
	}
	stored, ok := d.secrets[name]
	if !ok {
		return "", v.notFound(name)
	}
	if d.legacy {
		password, err := v.ask(ctx)
		if err != nil {
			return "", err
		}
		return v.openLegacy(d, name, stored, password)
	}
	k, err := v.open(ctx, d)
	if err != nil {
		return "", err
	}
	text, err := k.decrypt(name, stored)
	if err != nil {
		return "", v.unusable(d, k, name, stored, err)
	}
	return text, nil
}

func (v *Vault) set(ctx context.Context, name, text string, replace bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	return v.change(ctx, func(d *document) error {
		if _, ok := d.secrets[name]; ok && !replace {
			return errExists(name)
		}
		if replace {
			delete(d.secrets, name) // it need not be readable
		}
		if err := v.upgrade(ctx, d); err != nil {
			return err
		}
		k, err := v.open(ctx, d)
		if err != nil {
			return err
		}
		d.secrets[name] = k.encrypt(name, text)
		return nil
	})
}

// change lets edit change what the file holds and writes the result, while no other process
// does the same. If edit fails nothing is written.
func (v *Vault) change(ctx context.Context, edit func(*document) error) error {
	done, err := v.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	unlock, err := atomicfile.Lock(ctx, v.opts.File+".lock")
	if err != nil {
		return v.border(err)
	}
	defer unlock()
	d, err := v.read()
	if err != nil {
		return v.border(err)
	}
	old := d.legacy && d.path == v.opts.File
	if err := edit(d); err != nil {
		return v.border(err)
	}
	if old && !d.legacy {
		if err := v.keepOld(); err != nil {
			return v.border(err)
		}
	}
	return v.border(atomicfile.Write(v.opts.File, d.text(), atomicfile.Options{Mode: atomicfile.Private}))
}

// keepOld copies the file, which is of the older form and about to be rewritten, to a file
// beside it, unless there is one from before.
func (v *Vault) keepOld() error {
	kept := v.opts.File + ".v1"
	if exists(kept) {
		return nil
	}
	src, err := os.ReadFile(v.opts.File)
	if err == nil {
		err = atomicfile.Write(kept, src, atomicfile.Options{Mode: atomicfile.Private})
	}
	if err != nil {
		return fmt.Errorf("keeping a copy of the vault of the older form: %w", err)
	}
	v.opts.Warn(fmt.Sprintf("%s has a new form from now on, which older programs do not read; the vault as it was is kept in %s", v.opts.File, kept))
	return nil
}

// take waits for the turn to use v; done gives it back.
func (v *Vault) take(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case v.turn <- struct{}{}:
		return func() { <-v.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the file, or the legacy one if there is only that. Where there is none the
// document is empty.
func (v *Vault) read() (*document, error) {
	for _, path := range []string{v.opts.File, v.opts.LegacyFile} {
		if path == "" {
			continue
		}
		src, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return parse(path, src)
	}
	return &document{path: v.opts.File, secrets: make(map[string]string)}, nil
}

// open returns the key of d, which it makes if d has none yet.
func (v *Vault) open(ctx context.Context, d *document) (*key, error) {
	if d.key != "" && d.key == v.sealed {
		return v.opened, nil
	}
	password, err := v.ask(ctx)
	if err != nil {
		return nil, err
	}
	k := newKey()
	if d.key == "" {
		if d.key, err = k.seal(password, v.workFactor); err != nil {
			return nil, err
		}
	} else if k, err = openKey(d.key, password); err != nil {
		return nil, v.wrongKey(d, err)
	}
	v.sealed, v.opened = d.key, k
	return k, nil
}

// upgrade brings d, which may be of the older form, to the present one.
func (v *Vault) upgrade(ctx context.Context, d *document) error {
	if !d.legacy {
		return nil
	}
	password, err := v.ask(ctx)
	if err != nil {
		return err
	}
	texts := make(map[string]string, len(d.secrets))
	for name, stored := range d.secrets {
		if texts[name], err = v.openLegacy(d, name, stored, password); err != nil {
			return err
		}
	}
	d.legacy = false
	k, err := v.open(ctx, d)
	if err != nil {
		return err
	}
	for name, text := range texts {
		d.secrets[name] = k.encrypt(name, text)
	}
	return nil
}

// openLegacy decrypts an entry of the older form.
func (v *Vault) openLegacy(d *document, name, stored, password string) (string, error) {
	e, err := parseEnvelope(stored)
	if err != nil {
		return "", problem(fault.Config, ErrDamaged, "%s: secret %q: %v", d.path, name, err).WithHint("%s", replaceHint(name))
	}
	text, protected, err := e.open(password)
	if err != nil {
		// One entry has no means to tell the one from the other.
		err := problem(fault.Config, ErrPassword, "%s: secret %q", d.path, name)
		return "", err.WithHint("check %s; if other secrets can be read, this one is damaged: %s", v.opts.Password.description(), replaceHint(name))
	}
	if !protected {
		v.opts.Warn(fmt.Sprintf("secret %q was stored by a version that did not protect it, and anyone who has seen %s may know it: replace it (%s)", name, d.path, replaceHint(name)))
	}
	return text, nil
}

// wrongKey explains why the key of d cannot be opened.
func (v *Vault) wrongKey(d *document, err error) error {
	if errors.Is(err, ErrPassword) {
		return problem(fault.Config, ErrPassword, "%s", d.path).WithHint("check %s", v.opts.Password.description())
	}
	return problem(fault.Config, ErrDamaged, "%s: key: %v", d.path, err).WithHint("restore the file from a copy")
}

// unusable explains why a secret cannot be decrypted.
func (v *Vault) unusable(d *document, k *key, name, stored string, err error) error {
	for other := range d.secrets {
		if _, err := k.decrypt(other, stored); err == nil {
			return problem(fault.Config, ErrSwapped, "%s: secret %q is not what was stored under that name (that was %q)", d.path, name, other).
				WithHint("restore the file from a copy, or: %s", replaceHint(name))
		}
	}
	return problem(fault.Config, ErrDamaged, "%s: secret %q: %v", d.path, name, err).WithHint("restore the file from a copy, or: %s", replaceHint(name))
}

func (v *Vault) notFound(name string) *fault.Error {
	return problem(fault.NotFound, ErrNotFound, "secret %q", name).WithHint("loki --secret add %s", text.Word(name))
}

func replaceHint(name string) string { return "loki --secret update " + text.Word(name) }

// maxName is the length of the longest name, in bytes.
const maxName = 256

// checkName tells whether a secret can be called name: its name has to fit into a
// placeholder, {{NAME}}, and into one line.
func checkName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > maxName:
		why = "it is too long"
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		why = "it has characters that cannot be written"
	case strings.TrimSpace(name) != name:
		why = "it begins or ends with a blank"
	case strings.Contains(name, "{{"), strings.Contains(name, "}}"), strings.HasSuffix(name, "}"):
		why = "braces are what encloses it in files"
	default:
		return nil
	}
	return problem(fault.Usage, ErrName, "%q: %s", name, why).WithHint("such as OPENAI_API_KEY")
}
