package command

import (
	"cmp"
	"context"
	"strings"

	"loki/internal/base/fault"
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
		names, err := v.List(ctx)
		return c.printUnless(err, cmp.Or(strings.Join(names, "\n"), "The vault is empty."))
	case verb != "add" && verb != "get" && verb != "update" && verb != "delete":
		return fault.New(fault.Usage, ".vault %s is not a command", verb).WithHint(".vault add NAME, get NAME, update NAME, delete NAME, list")
	case name == "":
		return c.usage(".vault " + verb + " NAME")
	}
	switch verb {
	case "add", "update":
		return c.printUnless(v.Ask(ctx, c.Asker, name, verb == "update"), "✓ Secret "+name+" is in the vault. Settings refer to it as '{{"+name+"}}'.")
	case "delete":
		return c.printUnless(v.Delete(ctx, name), "✓ Secret "+name+" is deleted")
	}
	secret, err := v.Get(ctx, name)
	if err == nil {
		c.Out.Reveal(secret)
	}
	return err
}
