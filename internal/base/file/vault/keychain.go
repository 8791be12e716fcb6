package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// Keychain is where the operating system keeps passwords: Keychain on macOS, Credential
// Manager on Windows, the Secret Service (GNOME Keyring, KWallet) on other systems.
type Keychain interface {
	// Get returns a password; the error wraps [keyring.ErrNotFound] if it does not
	// exist.
	Get(service, account string) (string, error)
	Set(service, account, password string) error
}

// The password of the vault has these names in the keychain.
const (
	KeychainService = "loki"
	KeychainAccount = "vault"
)

// system is the keychain of the operating system.
type system struct{}

func (system) Get(service, account string) (string, error) { return keyring.Get(service, account) }

func (system) Set(service, account, password string) error {
	return keyring.Set(service, account, password)
}

func (p *Password) fromKeychain(ctx context.Context) (string, error) {
	password, err := whileWanted(ctx, func() (string, error) { return p.Keychain.Get(KeychainService, KeychainAccount) })
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, keyring.ErrNotFound):
		return "", fmt.Errorf("the keychain has no password %s of %s", KeychainAccount, KeychainService)
	case err != nil:
		return "", fmt.Errorf("the keychain cannot be used: %w", err)
	}
	return trimPassword([]byte(password), "the password in the keychain")
}

func (p *Password) toKeychain(ctx context.Context, password string) error {
	_, err := whileWanted(ctx, func() (string, error) {
		return "", p.Keychain.Set(KeychainService, KeychainAccount, password)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the keychain cannot be used: %w", err)
	}
	return err
}

// whileWanted calls f, but does not wait for it any longer than ctx lasts: the system may
// be asking the user to unlock the keychain, and there is no way to stop it. Only then a
// goroutine is left behind, which ends with the call.
func whileWanted(ctx context.Context, f func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := f()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
