package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/frontend/command/display"
)

func infoCommands() []Command {
	return []Command{
		{Name: ".info", Args: "[PART]", Help: "Show what is in force, and where files are", Group: General, Offered: always, do: (*Console).info, complete: completeInfo()},
		{Name: ".info ignore", Help: "List the files that hide others from models here", Group: General, Offered: always, do: (*Console).infoIgnored},
		{Name: ".info instructions", Help: "List the files that instruct models here", Group: General, Offered: always, do: (*Console).infoInstructions},
	}
}

// infoAll is the part of .info that has all others.
const infoAll = "all"

// info is for .info: what matters most, a part, or, in a macro and where no user types, everything.
func (c *Console) info(_ context.Context, part string) error {
	all := display.Info(c.App, c.conv)
	if part == infoAll || part == "" && (c.InMacro || !c.Interactive) {
		return c.printUnless(nil, display.InfoText(all))
	}
	var names []string
	for _, p := range display.InfoParts() {
		if p.Name == part {
			return c.printUnless(nil, display.InfoText(pickMembers(all, p.Keys)))
		}
		names = append(names, p.Name)
	}
	names = append(names, infoAll)
	if part != "" {
		return fault.New(fault.Usage, ".info has no part %q", part).WithHint("the parts: %s", strings.Join(names, ", "))
	}
	return c.printUnless(nil, display.InfoText(pickMembers(all, display.InfoShort()))+"\nMore: .info "+strings.Join(names, "|"))
}

// pickMembers returns the members of an object that keys name, in their order.
func pickMembers(all *value.Object, keys []string) *value.Object {
	var members []value.Member
	for _, key := range keys {
		if v, ok := all.Get(key); ok {
			members = append(members, value.Member{Name: key, Value: v})
		}
	}
	return value.ObjectOf(members...)
}

// completeInfo completes a part.
func completeInfo() completer {
	return first(func(*Console, context.Context, []string) (found []Candidate) {
		for _, p := range display.InfoParts() {
			found = append(found, Candidate{Value: p.Name, Description: fmt.Sprintf("%s, ...", strings.Join(p.Keys[:min(3, len(p.Keys))], ", "))})
		}
		return append(found, Candidate{Value: infoAll})
	})
}

// infoIgnored is for .info ignore.
func (c *Console) infoIgnored(context.Context, string) error {
	table, _ := display.IgnoreFiles(c.App)
	return c.printUnless(nil, cmp.Or(table, display.NoIgnored))
}

// infoInstructions is for .info instructions.
func (c *Console) infoInstructions(ctx context.Context, _ string) error {
	table, _, err := display.Instructions(ctx, c.App)
	return c.printUnless(err, cmp.Or(table, display.NoInstructions))
}
