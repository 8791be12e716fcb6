package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/file/userfile"
	"loki/internal/base/process"
	"loki/internal/base/text"
)

// Password says where the password of a vault is kept. The first place of these that is
// set counts: a File that exists, a Command, the keychain of the system if it has the
// password, the DefaultFile.
type Password struct {
	File        string // as configured; if it does not exist, the next place counts
	DefaultFile string // may be empty

	// Command is a program and its arguments that print the password: words, with quotes
	// around words that contain blanks. No shell is involved. Its standard input is empty,
	// but it may ask the user on the terminal.
	Command string
	Timeout time.Duration // of Command; 0 means [DefaultTimeout]
	Env     []string      // of Command, as KEY=value; nil is an empty environment
	// Dir returns the working directory of Command, by a name for it; nil means that of this process.
	Dir func(name string) (string, error)

	UseKeychain bool
	Keychain    Keychain // nil means that of the system
}

// DefaultTimeout is how long a password command may take. The user may have to type.
const DefaultTimeout = 2 * time.Minute

// maxPassword is the length of the longest password, in bytes.
const maxPassword = 4 << 10

// description names the place of the password, for messages.
func (p Password) description() string {
	switch {
	case p.File != "" && exists(p.File):
		return "the password in " + p.File
	case p.Command != "":
		return "what vault_password_command prints"
	case p.UseKeychain && p.DefaultFile != "" && exists(p.DefaultFile):
		return "the password in the keychain, or in " + p.DefaultFile
	case p.UseKeychain:
		return "the password in the keychain"
	}
	return "the password in " + cmp.Or(p.DefaultFile, p.File)
}

// ask returns the password of v, which is looked up once.
func (v *Vault) ask(ctx context.Context) (string, error) {
	if v.password != nil {
		return *v.password, nil
	}
	password, err := v.find(ctx)
	if err != nil {
		return "", err
	}
	v.password = &password
	return password, nil
}

func (v *Vault) find(ctx context.Context) (string, error) {
	p := &v.opts.Password
	if p.File != "" && exists(p.File) {
		return readPassword(p.File)
	}
	if p.Command != "" {
		return p.run(ctx)
	}
	var keychainErr error
	if p.UseKeychain {
		password, err := p.fromKeychain(ctx)
		if err == nil || ctx.Err() != nil {
			return password, err
		}
		keychainErr = err
	}
	if p.DefaultFile != "" && exists(p.DefaultFile) {
		if keychainErr != nil {
			v.opts.Warn(fmt.Sprintf("the vault password is taken from %s: %v", p.DefaultFile, keychainErr))
		}
		return readPassword(p.DefaultFile)
	}
	err := problem(fault.Config, ErrNoPassword, "%s", v.opts.File)
	if keychainErr != nil {
		err.Err = fmt.Errorf("%w: %w", ErrNoPassword, keychainErr)
	}
	return "", err.WithHint("put one of at least %d characters into %s (chmod 600), or run loki --secret add NAME in a terminal", MinPassword, cmp.Or(p.File, p.DefaultFile, "a file that vault_password_file names"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// readPassword reads a password file.
func readPassword(path string) (string, error) {
	if err := userfile.Check(path); err != nil {
		return "", fault.Wrap(fault.Config, err, "vault password")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "vault password")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "vault password")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return "", fault.New(fault.Config, "the vault password file %s can be used by others (its mode is %04o)", path, mode).
			WithHint("chmod 600 %s; where that is impossible, set vault_password_command: cat %s", text.Word(path), text.Word(path))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "vault password")
	}
	return trimPassword(data, path)
}

// trimPassword returns the password that data from a place is.
func trimPassword(data []byte, place string) (string, error) {
	if len(data) > maxPassword {
		return "", fault.New(fault.Config, "%s: a password has at most %d bytes", place, maxPassword)
	}
	password := strings.TrimSpace(string(data))
	if password == "" {
		return "", problem(fault.Config, ErrNoPassword, "%s is empty", place)
	}
	return password, nil
}

const commandName = "vault_password_command"

// run returns what the password command prints.
func (p *Password) run(ctx context.Context) (string, error) {
	argv, err := splitCommand(p.Command)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, commandName)
	}
	dir := ""
	if p.Dir != nil {
		if dir, err = p.Dir("vault"); err != nil {
			return "", fault.Wrap(fault.Config, err, commandName)
		}
	}
	res, err := process.Run(ctx, process.Command{
		Path: argv[0], Args: argv[1:], Dir: dir, Env: p.Env, Terminal: true,
		Timeout: cmp.Or(p.Timeout, DefaultTimeout), HasTimeout: true, MaxStdout: 2 * maxPassword,
	})
	if err != nil {
		return "", fault.Wrap(fault.Config, err, commandName)
	}
	return trimPassword(res.Stdout, commandName)
}
