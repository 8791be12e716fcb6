package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/bundle/remote"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

func installCommands() []Command {
	return []Command{
		{Name: ".install", Args: strings.Join(app.Categories(), "|"), Help: "Restore files that come with the program", Group: General, Offered: always, do: (*Console).install, complete: completeInstall()},
		{
			Name: ".install remote", Args: "URL[#REF] [--filter CATEGORY] [--force] [--yes] [--dry-run]", Help: "Install a bundle of others from a Git repository",
			Group: General, Offered: always, do: installRemote, complete: completeInstallRemote,
		},
		{
			Name: ".bundle", Args: "[update NAME | remove NAME]", Help: "List the installed bundles, update or remove one",
			Group: General, Offered: always, do: bundle, complete: completeBundle,
		},
	}
}

// install is for .install.
func (c *Console) install(ctx context.Context, name string) error {
	if !slices.Contains(app.Categories(), name) {
		return fault.New(fault.Usage, "%q is not a part of the program that can be installed", name).WithHint("there are: %s", strings.Join(app.Categories(), ", "))
	}
	of := app.Category(name)
	if c.Interactive || c.InMacro {
		sure, err := c.confirm(ctx, c.App.InstallLoss(of)+" Continue?", false)
		if err != nil {
			return err
		}
		if !sure {
			return c.printUnless(nil, "Nothing was changed.")
		}
	}
	files, err := c.App.Install(of)
	return c.printUnless(err, "✓ Installed "+name+" in "+c.App.InstallDir(of)+": "+text.Count(files, "file"))
}

// installer returns what installs bundles and asks the user of the console.
func (c *Console) installer() *remote.Installer {
	i := c.App.Bundles(c.Asker, c.Out.Print)
	i.Busy = c.Busy
	return i
}

// installRemote installs the bundle of .install remote.
func installRemote(c *Console, ctx context.Context, args string) error {
	i := c.installer()
	source, only, err := installOptions(i, args)
	if err != nil {
		return err
	}
	return c.reportBundle(i.Install(ctx, source, only...))
}

// installOptions reads the arguments of .install remote.
func installOptions(i *remote.Installer, args string) (source string, only []remote.Category, err error) {
	list, _ := words(args)
	invalid := func(format string, values ...any) (string, []remote.Category, error) {
		return "", nil, fault.New(fault.Usage, format, values...).WithHint(".install remote URL[#REF] [--filter CATEGORY] [--force] [--yes] [--dry-run]")
	}
	for len(list) > 0 {
		word := list[0]
		list = list[1:]
		if word == "--filter" && len(list) > 0 {
			word, list = word+"="+list[0], list[1:]
		}
		category, filter := strings.CutPrefix(word, "--filter=")
		switch {
		case filter && !slices.Contains(remote.Categories(), category):
			return invalid("%q is not one of %s", category, strings.Join(remote.Categories(), ", "))
		case filter:
			only = []remote.Category{remote.Category(category)}
		case word == "--force" || word == "--install-force": // as the command line has it
			i.Force = true
		case word == "--yes":
			i.Yes = true
		case word == "--dry-run":
			i.DryRun = true
		case strings.HasPrefix(word, "--"):
			return invalid("%s is not an option of .install remote", word)
		case source != "":
			return invalid("one address is expected, and %q follows it", word)
		default:
			source = word
		}
	}
	if source == "" {
		return invalid("the address of the bundle is missing")
	}
	return source, only, nil
}

// bundle does what .bundle says.
func bundle(c *Console, ctx context.Context, args string) error {
	list, _ := words(args)
	i := c.installer()
	switch {
	case len(list) == 0:
		return c.listBundles(i)
	case len(list) == 2 && list[0] == "update":
		return c.reportBundle(i.Update(ctx, list[1]))
	case len(list) == 2 && list[0] == "remove":
		return c.reportBundle(i.Remove(ctx, list[1]))
	}
	return fault.New(fault.Usage, "%q is not what .bundle can do", args).WithHint(".bundle update NAME, .bundle remove NAME, or .bundle alone for a list")
}

// listBundles shows the installed bundles.
func (c *Console) listBundles(i *remote.Installer) error {
	records, err := i.List()
	if len(records) == 0 {
		if err == nil {
			c.Out.Note("no bundles are installed: .install remote URL installs one")
		}
		return err
	}
	c.Out.Print(strings.TrimSuffix(display.Table(remote.Rows(records, func(t time.Time) string { return display.Age(time.Since(t)) }), 1, 2), "\n"))
	return err
}

// reportBundle shows what was done.
func (c *Console) reportBundle(r remote.Report, err error) error {
	if err != nil && r.Items == nil {
		return err
	}
	c.Out.Print(strings.TrimSuffix(r.Text(), "\n"))
	return err
}

// completeInstallRemote completes the options, and categories behind --filter.
func completeInstallRemote(_ *Console, _ context.Context, list []string) []Candidate {
	if n := len(list); n > 1 && list[n-2] == "--filter" {
		return candidatesOf(remote.Categories())
	}
	options := []string{"--filter", "--force", "--yes", "--dry-run"}
	return candidatesOf(slices.DeleteFunc(options, func(o string) bool { return slices.Contains(list[:len(list)-1], o) }))
}

func completeBundle(c *Console, _ context.Context, list []string) []Candidate {
	switch len(list) {
	case 1:
		return candidatesOf([]string{"update", "remove"})
	case 2:
		records, _ := c.installer().List() // a damaged one is not offered
		return candidatesOf(remote.Names(records))
	}
	return nil
}
