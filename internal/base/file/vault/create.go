package vault

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
)

// MinPassword is the number of characters that a password of the user should have at least.
const MinPassword = 10

// attempts is how often the user may mistype before it is an error.
const attempts = 3

// Place is where the password of a vault is kept. The zero Place is neither: a command prints it.
type Place struct {
	File     string
	Keychain bool
}

// String names the place.
func (p Place) String() string {
	switch {
	case p.Keychain:
		return "the keychain of the system"
	case p.File != "":
		return p.File
	}
	return "what vault_password_command prints"
}

// CreatePassword stores a password where v looks for it, without a question, if none is stored yet: in the keychain if v
// uses it, otherwise in the configured or the default file, readable for the user alone. A new vault gets a random one. For a vault that has secrets, it
// is its own password, which the asker is asked for.
//
// With keychain, a password is put into the keychain where that works and no file is configured. The caller has to
// configure vault_keychain then.
func (v *Vault) CreatePassword(ctx context.Context, asker ask.Asker, keychain bool) (Place, error) {
	done, err := v.take(ctx)
	if err != nil {
		return Place{}, err
	}
	defer done()
	place, err := v.createPassword(ctx, asker, keychain)
	return place, v.border(err)
}

func (v *Vault) createPassword(ctx context.Context, asker ask.Asker, keychain bool) (Place, error) {
	p := &v.opts.Password
	_, err := v.find(ctx)
	switch {
	case err == nil:
		return Place{File: p.inFile(), Keychain: p.UseKeychain && (p.File == "" || !exists(p.File))}, nil
	case !errors.Is(err, ErrNoPassword) || p.Command != "" && (p.File == "" || !exists(p.File)):
		return Place{}, err // creating another password would not help
	}
	offered := "" // the password of another vault, which must not be replaced
	keychain = (keychain || p.UseKeychain) && p.File == ""
	if keychain {
		offered, _ = p.fromKeychain(ctx)
	}
	password, err := v.newPassword(ctx, asker, offered)
	if err != nil {
		return Place{}, err
	}
	if keychain && (offered == "" || offered == password) {
		err := p.toKeychain(ctx, password)
		if err == nil {
			v.password, p.UseKeychain = &password, true
			return Place{Keychain: true}, nil
		}
		if p.UseKeychain || ctx.Err() != nil {
			return Place{}, fault.Wrap(fault.Config, err, "vault password").WithHint("set vault_keychain: false to keep it in a file")
		}
	}
	path := p.target()
	if path == "" {
		return Place{}, fault.New(fault.Config, "there is no home directory to keep the vault password in").WithHint("set vault_password_file")
	}
	if err := atomicfile.Write(path, []byte(password+"\n"), atomicfile.Options{Mode: atomicfile.Private}); err != nil {
		return Place{}, err
	}
	v.password = &password
	return Place{File: path}, nil
}

// target returns the file that a new password goes to.
func (p *Password) target() string {
	switch {
	case p.File != "":
		return p.File
	case p.Command != "":
		return ""
	}
	return p.DefaultFile
}

// inFile returns the file that holds the password that was found, empty if it is elsewhere.
func (p *Password) inFile() string {
	switch {
	case p.File != "" && exists(p.File):
		return p.File
	case p.Command != "" || p.UseKeychain:
		return ""
	}
	return p.DefaultFile
}

// newPassword returns one for a new vault, which is offered or else random. That of a vault with secrets has to open it, and is
// asked for unless the one that is offered does.
func (v *Vault) newPassword(ctx context.Context, asker ask.Asker, offered string) (string, error) {
	d, err := v.read()
	if err != nil {
		return "", err
	}
	if d.key == "" && len(d.secrets) == 0 {
		return cmp.Or(offered, rand.Text()), nil
	}
	if offered != "" && v.check(d, offered) == nil {
		return offered, nil
	}
	for range attempts {
		answer, err := asker.Ask(ctx, ask.Question{
			ID: "vault-password", Kind: ask.Secret, Text: "Password of the vault " + d.path + ", which has secrets already",
		})
		if err != nil {
			return "", err
		}
		password := strings.TrimSpace(answer)
		if err := v.check(d, password); err == nil || !errors.Is(err, ErrPassword) {
			return password, err
		}
	}
	return "", problem(fault.Config, ErrPassword, "%s", d.path)
}

// check reports whether password opens d.
func (v *Vault) check(d *document, password string) error {
	if password == "" {
		return ErrPassword
	}
	if !d.legacy {
		k, err := openKey(d.key, password)
		if err != nil {
			return v.wrongKey(d, err)
		}
		v.sealed, v.opened = d.key, k
		return nil
	}
	// Any entry that needs the password will do; damaged ones show nothing.
	for _, name := range slices.Sorted(maps.Keys(d.secrets)) {
		e, err := parseEnvelope(d.secrets[name])
		if err != nil {
			continue
		}
		if _, protected, err := e.open(password); err != nil || protected {
			return err
		}
	}
	return nil
}

// Ask asks for a secret and puts it into the vault, which gets a password first if it has none. Without replace the name has to be new,
// which is looked at before anything is asked.
func (v *Vault) Ask(ctx context.Context, asker ask.Asker, name string, replace bool) error {
	set := v.Update
	if !replace {
		set = v.Add
		if err := v.CanAdd(ctx, name); err != nil {
			return err
		}
	}
	if _, err := v.CreatePassword(ctx, asker, false); err != nil {
		return err
	}
	text, err := AskSecret(ctx, asker, name)
	if err != nil {
		return err
	}
	return set(ctx, name, text)
}

// AskSecret asks for a new secret called name, twice; it is not empty.
func AskSecret(ctx context.Context, asker ask.Asker, name string) (string, error) {
	text := "Secret " + name
	q := ask.Question{ID: "secret", Kind: ask.Secret, Text: text, Validate: func(answer string) error {
		if answer == "" {
			return errors.New("it must not be empty")
		}
		return nil
	}}
	for range attempts {
		first, err := asker.Ask(ctx, q)
		if err != nil {
			return "", err
		}
		second, err := asker.Ask(ctx, ask.Question{ID: "secret-again", Kind: ask.Secret, Text: "Again"})
		if err != nil {
			return "", err
		}
		if first == second {
			return first, nil
		}
		q.Text = text + ". The two were not the same; try again"
	}
	return "", fault.New(fault.Usage, "%s: entered twice, the two were never the same", text)
}
