package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"loki/internal/ask"
	"loki/internal/fault"
	"loki/internal/oauth"
	"loki/internal/vault"
)

// secrets does what the options of the vault ask for.
func (c *command) secrets(ctx context.Context) error {
	v := c.app.Vault()
	switch {
	case c.opts.listSecrets:
		names, err := v.List(ctx)
		if err != nil {
			return err
		}
		if len(names) == 0 && c.opts.output == outputText {
			_, err := fmt.Fprintln(c.Out, "The vault is empty.")
			return err
		}
		return c.printNames(names)
	case c.opts.getSecret != "":
		text, err := v.Get(ctx, c.opts.getSecret)
		if err != nil {
			return err
		}
		if c.opts.output != outputText {
			return printJSON(c.Out, map[string]string{"name": c.opts.getSecret, "value": text})
		}
		_, err = fmt.Fprintln(c.Out, text)
		return err
	case c.opts.deleteSecret != "":
		if err := v.Delete(ctx, c.opts.deleteSecret); err != nil {
			return err
		}
		return c.say("Secret %s is deleted.", c.opts.deleteSecret)
	case c.opts.updateSecret != "":
		return c.setSecret(ctx, v, c.opts.updateSecret, v.Update)
	default:
		return c.setSecret(ctx, v, c.opts.addSecret, v.Add)
	}
}

// setSecret asks for a secret and stores it. A vault without a password gets one first.
func (c *command) setSecret(ctx context.Context, v *vault.Vault, name string, set func(ctx context.Context, name, text string) error) error {
	asker := c.askerOfSecrets()
	if _, err := v.CreatePassword(ctx, asker, false); err != nil {
		return err
	}
	text, err := vault.AskSecret(ctx, asker, name)
	if err != nil {
		return err
	}
	if err := set(ctx, name, text); err != nil {
		return err
	}
	return c.say("Secret %s is in the vault. Settings refer to it as '{{%s}}'.", name, name)
}

// askerOfSecrets asks at the terminal, or takes the lines of a pipe.
func (c *command) askerOfSecrets() ask.Asker {
	if !c.InTerminal {
		return ask.NewPipedSecrets(c.In)
	}
	return c.terminalAsker()
}

// say tells the user that something is done.
func (c *command) say(format string, args ...any) error {
	if c.opts.output != outputText {
		return printJSON(c.Out, map[string]string{"message": fmt.Sprintf(format, args...)})
	}
	_, err := fmt.Fprintf(c.Out, format+"\n", args...)
	return err
}

// authenticate logs in to the client that --authenticate names, or to the only one that
// can be logged in to.
func (c *command) authenticate(ctx context.Context) error {
	name := c.opts.authenticate
	if name == anyClient {
		names := c.app.LoginClients()
		switch len(names) {
		case 0:
			return fault.New(fault.Config, "no client logs in with OAuth").WithHint("set auth: oauth for a client of type claude or gemini in config.yaml")
		case 1:
			name = names[0]
		default:
			var err error
			if name, err = c.terminalAsker().Ask(ctx, ask.Question{Kind: ask.Select, Text: "Log in to which client?", Options: names}); err != nil {
				return err
			}
		}
	}
	if err := c.app.Authenticate(ctx, name, loginUser{c}); err != nil {
		return err
	}
	return c.say("Client %s is logged in.", name)
}

// loginUser is the user who logs in.
type loginUser struct{ *command }

var _ oauth.User = loginUser{}

// Visit implements [oauth.User].
func (u loginUser) Visit(address, code string) error {
	fmt.Fprintf(u.Err, "Open this address to log in:\n\n  %s\n\n", address)
	if code != "" {
		fmt.Fprintf(u.Err, "The code to enter there: %s\n\n", code)
	}
	if u.InTerminal && u.ErrTerminal {
		u.openBrowser(address)
	}
	return nil
}

// Code implements [oauth.User].
func (u loginUser) Code(ctx context.Context) (string, error) {
	return u.askerOfSecrets().Ask(ctx, ask.Question{Kind: ask.Line, Text: "Paste the code that the page shows:"})
}

// openBrowser tries to open an address. The user has been told it, so that it does not
// matter if nothing happens.
func (u loginUser) openBrowser(address string) {
	var opener *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		opener = exec.Command("open", address)
	case "windows":
		opener = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	default:
		opener = exec.Command("xdg-open", address)
	}
	opener.Env = u.app.Child().Environ
	if opener.Start() == nil {
		_ = opener.Process.Release() // it ends with the browser, perhaps after this program
	}
}
