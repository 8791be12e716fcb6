package vault

import (
	"errors"

	"loki/internal/base/fault"
)

// What can be wrong with a vault. Errors of this package that have one of these reasons
// wrap it; they are of type [fault.Error] and have a code and often a hint. They never show a
// secret or a password.
var (
	ErrNotFound   = errors.New("no such secret")                         // code NotFound
	ErrExists     = errors.New("there is a secret of that name already") // code Usage
	ErrName       = errors.New("a secret cannot have that name")         // code Usage
	ErrNoPassword = errors.New("no password for the vault")              // code Config; [Vault.CreatePassword] helps
	ErrPassword   = errors.New("the password does not open the vault")   // code Config
	ErrUnreadable = errors.New("not a vault file")                       // code Config
	ErrDamaged    = errors.New("damaged, or not of this vault")          // code Config
	ErrSwapped    = errors.New("it is the value of another secret")      // code Config
)

// problem is an error of a code whose chain ends with reason.
func problem(code fault.Code, reason error, format string, args ...any) *fault.Error {
	return fault.Wrap(code, reason, format, args...)
}

// border adds a code to an error without one, such as one of the file system.
func (v *Vault) border(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || err == nil {
		return err
	}
	return fault.Wrap(fault.Failure, err, "vault")
}
