package command

import (
	"context"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/setup/vault"
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
	case "add", "update":
		if err := v.Ask(ctx, c.Asker, name, verb == "update"); err != nil {
			return err
		}
		c.Out.Print("✓ Secret " + name + " is in the vault. Settings refer to it as '{{" + name + "}}'.")
		return nil
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
