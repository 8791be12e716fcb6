package cli

import (
	"context"
	"errors"
	"fmt"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/base/file/vault"
	"loki/internal/tool/mcp/servers"
)

// listSecrets prints the names of the secrets.
func (c *command) listSecrets(ctx context.Context) error {
	names, err := c.app.Vault().List(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 && c.opts.output == outputText {
		_, err := fmt.Fprintln(c.Out, "The vault is empty.")
		return err
	}
	return c.printNames(names)
}

// getSecret prints a secret.
func (c *command) getSecret(ctx context.Context) error {
	secret, err := c.app.Vault().Get(ctx, c.opts.value)
	if err != nil {
		return err
	}
	return c.print(map[string]string{"name": c.opts.value, "value": secret}, secret+"\n")
}

// deleteSecret deletes a secret.
func (c *command) deleteSecret(ctx context.Context) error {
	if err := c.app.Vault().Delete(ctx, c.opts.value); err != nil {
		return err
	}
	return c.say("Secret %s is deleted.", c.opts.value)
}

// updateSecret changes a secret.
func (c *command) updateSecret(ctx context.Context) error {
	v := c.app.Vault()
	return c.setSecret(ctx, v, c.opts.value, v.Update)
}

// addSecret puts a new secret into the vault.
func (c *command) addSecret(ctx context.Context) error {
	v := c.app.Vault()
	if err := v.CanAdd(ctx, c.opts.value); err != nil { // before anything is asked
		return err
	}
	return c.setSecret(ctx, v, c.opts.value, v.Add)
}

// setSecret asks for a secret and stores it. A vault without a password gets one first.
func (c *command) setSecret(ctx context.Context, v *vault.Vault, name string, set func(ctx context.Context, name, text string) error) error {
	asker := c.askerOfSecrets()
	if _, err := v.CreatePassword(ctx, asker, false); err != nil {
		return c.pipedHint(err, "the vault has secrets, and its password is not stored: the lines of standard input are the password and the secret")
	}
	text, err := c.readSecret(ctx, asker, name)
	if err != nil {
		return err
	}
	if err := set(ctx, name, text); err != nil {
		return err
	}
	return c.say("Secret %s is in the vault. Settings refer to it as '{{%s}}'.", name, name)
}

// readSecret asks for a secret: twice at a terminal. In a pipe it is one line, which may come
// twice.
func (c *command) readSecret(ctx context.Context, asker ask.Asker, name string) (string, error) {
	if c.InTerminal {
		return vault.AskSecret(ctx, asker, name)
	}
	q := ask.Question{ID: "secret", Kind: ask.Secret, Text: "Secret " + name}
	text, err := asker.Ask(ctx, q)
	if err == nil && text == "" {
		err = errors.New("the secret is empty")
	}
	if err != nil {
		return "", c.pipedHint(err, "the secret is one line of standard input: printf '%s\\n' \"$KEY\" | loki --secret add "+name)
	}
	again, err := asker.Ask(ctx, q)
	if errors.Is(err, ask.ErrUnavailable) || err == nil && (again == text || again == "") {
		return text, nil
	}
	if err == nil {
		err = fault.New(fault.Usage, "standard input has two lines that differ, and a secret is one line").
			WithHint("no secret was stored; the vault makes its password itself, so pipe the secret alone: printf '%%s\\n' \"$KEY\" | loki --secret add %s", name)
	}
	return "", err
}

// pipedHint adds to an error what to do where the input is a pipe.
func (c *command) pipedHint(err error, hint string) error {
	if c.InTerminal || fault.CodeOf(err) == fault.Canceled {
		return err
	}
	return fault.Wrap(fault.CodeOf(err), err, "").WithHint("%s", hint)
}

// askerOfSecrets asks at the terminal, or takes the lines of a pipe.
func (c *command) askerOfSecrets() ask.Asker {
	if !c.InTerminal {
		return ask.NewPipedSecrets(c.In)
	}
	return c.terminal()
}

// say reports to the user that something is done.
func (c *command) say(format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return c.print(map[string]string{"message": message}, message+"\n")
}

// authenticate logs in to the client that --authenticate names, or to the only one that
// can be logged in to.
func (c *command) authenticate(ctx context.Context) error {
	name := c.opts.value
	if name == anyClient {
		var err error
		if name, err = c.app.LoginClient(ctx, c.terminal()); err != nil {
			return err
		}
	}
	if err := c.app.Authenticate(ctx, name, c.login()); err != nil {
		return err
	}
	return c.say("Client %s is logged in.", name)
}

// login returns the user who logs in.
func (c *command) login() servers.User {
	l := servers.User{Asker: c.askerOfSecrets(), Note: func(text string) { fmt.Fprintln(c.Err, text) }}
	if c.InTerminal && c.ErrTerminal {
		l.Browser = c.app.OpenBrowser
	}
	return l
}
