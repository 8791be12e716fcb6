package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"loki/internal/base/ask"
	"loki/internal/base/atomicfile"
	"loki/internal/base/fault"
)

// MinPassword is the number of characters that a new password has at least.
const MinPassword = 10

// attempts is how often the user may mistype before it is an error.
const attempts = 3

// CreatePassword asks for the password of v and stores it where v looks for it: in the
// keychain if that is what v uses, otherwise in the configured or the default file. A new
// vault gets a new password, which is asked for twice; for one that has secrets it is its
// own password, which must open it. Where a password is stored already, nothing is asked.
//
// With choosePath the user can choose another file, which the caller has to configure. The
// path of the file is returned, empty if the password is kept elsewhere. The error wraps
// [ErrNoPassword] if the user declines.
func (v *Vault) CreatePassword(ctx context.Context, asker ask.Asker, choosePath bool) (path string, err error) {
	done, err := v.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	path, err = v.createPassword(ctx, asker, choosePath)
	return path, v.border(err)
}

func (v *Vault) createPassword(ctx context.Context, asker ask.Asker, choosePath bool) (string, error) {
	p := &v.opts.Password
	_, err := v.find(ctx)
	switch {
	case err == nil:
		return p.inFile(), nil
	case !errors.Is(err, ErrNoPassword) || p.Command != "" && (p.File == "" || !exists(p.File)):
		return "", err // creating another password would not help
	}
	keychain := p.UseKeychain && p.File == ""
	path := p.target()
	switch {
	case keychain:
		err = v.confirm(ctx, asker, "Secrets are encrypted with a password, which the keychain of the system would keep. Store one there?")
	case path == "":
		return "", fault.New(fault.Config, "there is no home directory to keep the vault password in").WithHint("set vault_password_file")
	case exists(path):
		choosePath = false
		err = v.confirm(ctx, asker, "The file of the vault password, "+path+", is empty. Fill it?")
	default:
		err = v.confirm(ctx, asker, "Secrets are encrypted with a password, which a file keeps, so that you need not type it. Create that file?")
	}
	if err != nil {
		return "", err
	}
	if choosePath && !keychain {
		if path, err = askPath(ctx, asker, path); err != nil {
			return "", err
		}
	}
	password, err := v.askPassword(ctx, asker)
	if err != nil {
		return "", err
	}
	if keychain {
		if err := p.toKeychain(ctx, password); err != nil {
			return "", fault.Wrap(fault.Config, err, "vault password").WithHint("set vault_keychain: false to keep it in a file")
		}
		path = ""
	} else if err := atomicfile.Write(path, []byte(password+"\n"), atomicfile.Options{Mode: atomicfile.Private}); err != nil {
		return "", err
	}
	v.password = &password
	return path, nil
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

func (v *Vault) confirm(ctx context.Context, asker ask.Asker, text string) error {
	const yes, no = "Yes", "No"
	answer, err := asker.Ask(ctx, ask.Question{
		ID: "vault-password-create", Kind: ask.Select, Text: text, Options: []string{yes, no}, Default: yes, HasDefault: true,
	})
	if err == nil && answer != yes {
		return problem(fault.Config, ErrNoPassword, "%s", v.opts.File)
	}
	return err
}

// askPath asks for the path of a new file, in a directory that exists.
func askPath(ctx context.Context, asker ask.Asker, suggested string) (string, error) {
	answer, err := asker.Ask(ctx, ask.Question{
		ID: "vault-password-path", Kind: ask.Line, Text: "Which file?", Default: suggested, HasDefault: true,
		Validate: func(answer string) error { return checkPath(expandHome(answer)) },
	})
	if err != nil {
		return "", err
	}
	path := expandHome(answer)
	return path, checkPath(path) // of a default too
}

func checkPath(path string) error {
	if exists(path) {
		return fmt.Errorf("%s exists already", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no directory %s", dir)
	}
	return nil
}

// expandHome replaces the tilde that people type for their home directory.
func expandHome(path string) string {
	path = strings.TrimSpace(path)
	rest, ok := strings.CutPrefix(path, "~")
	if ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		if home, err := os.UserHomeDir(); err == nil {
			return home + rest
		}
	}
	return path
}

// askPassword asks for a new password, or for that of the vault if it has one.
func (v *Vault) askPassword(ctx context.Context, asker ask.Asker) (string, error) {
	d, err := v.read()
	if err != nil {
		return "", err
	}
	if d.key == "" && len(d.secrets) == 0 {
		text := fmt.Sprintf("Password of the vault, at least %d characters", MinPassword)
		password, err := askTwice(ctx, asker, "vault-password", text, func(answer string) error {
			switch password := strings.TrimSpace(answer); {
			case utf8.RuneCountInString(password) < MinPassword:
				return fmt.Errorf("it needs at least %d characters, without blanks around it", MinPassword)
			case len(password) > maxPassword:
				return fmt.Errorf("it can have %d bytes at most", maxPassword)
			}
			return nil
		})
		return strings.TrimSpace(password), err
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
	return askTwice(ctx, asker, "secret", "Secret "+name, func(answer string) error {
		if answer == "" {
			return errors.New("it must not be empty")
		}
		return nil
	})
}

func askTwice(ctx context.Context, asker ask.Asker, id, text string, validate func(string) error) (string, error) {
	q := ask.Question{ID: id, Kind: ask.Secret, Text: text, Validate: validate}
	for range attempts {
		first, err := asker.Ask(ctx, q)
		if err != nil {
			return "", err
		}
		second, err := asker.Ask(ctx, ask.Question{ID: id + "-again", Kind: ask.Secret, Text: "Again"})
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
