package command

import (
	"context"
	"strings"

	"loki/internal/fault"
	"loki/internal/vault"
)

func vaultCommands() []Command {
	return []Command{
		{Name: ".vault", Args: "add|get|update|delete|list [NAME]", Help: "Keep secrets for settings", Group: General, Offered: always, do: (*Console).secrets, complete: completeVault()},
	}
}

// secrets is for .vault.
func (c *Console) secrets(ctx context.Context, args string) error {
	verb, name := cutWord(args)
	v := c.App.Vault()
	switch {
	case verb == "list" && name == "":
		return c.listSecrets(ctx, v)
	case verb != "add" && verb != "get" && verb != "update" && verb != "delete":
		return fault.New(fault.Usage, ".vault %s is not a command", verb).WithHint(".vault add NAME, get NAME, update NAME, delete NAME, list")
	case name == "":
		return c.usage(".vault " + verb + " NAME")
	}
	switch verb {
	case "add":
		if err := v.CanAdd(ctx, name); err != nil { // before anything is asked
			return err
		}
		return c.setSecret(ctx, v, name, v.Add)
	case "update":
		return c.setSecret(ctx, v, name, v.Update)
	case "delete":
		if err := v.Delete(ctx, name); err != nil {
			return err
		}
		c.Out.Print("✓ Secret " + name + " is deleted")
		return nil
	}
	secret, err := v.Get(ctx, name)
	if err == nil {
		c.Out.Reveal(secret)
	}
	return err
}

// listSecrets prints the names of the secrets.
func (c *Console) listSecrets(ctx context.Context, v *vault.Vault) error {
	names, err := v.List(ctx)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		c.Out.Print("The vault is empty.")
	default:
		c.Out.Print(strings.Join(names, "\n"))
	}
	return nil
}

// setSecret asks for a secret and stores it. A vault without a password gets one first.
func (c *Console) setSecret(ctx context.Context, v *vault.Vault, name string, set func(ctx context.Context, name, text string) error) error {
	if _, err := v.CreatePassword(ctx, c.Asker, false); err != nil {
		return err
	}
	secret, err := vault.AskSecret(ctx, c.Asker, name)
	if err != nil {
		return err
	}
	if err := set(ctx, name, secret); err != nil {
		return err
	}
	c.Out.Print("✓ Secret " + name + " is in the vault. Settings refer to it as '{{" + name + "}}'.")
	return nil
}
