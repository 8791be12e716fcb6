package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"loki/internal/agent/bundle/remote"
	"loki/internal/base/ask"
	"loki/internal/frontend/command/display"
)

// bundles is what the options of bundles ask for.
type bundles struct {
	filter string
	force  bool
}

// installFrom installs the bundle of --bundle install.
func (c *command) installFrom(ctx context.Context) error {
	var only []remote.Category
	if c.opts.bundles.filter != "" {
		only = []remote.Category{remote.Category(c.opts.bundles.filter)}
	}
	return c.reportBundle(c.installer().Install(ctx, c.opts.value, only...))
}

// updateBundle updates the bundle of --bundle update.
func (c *command) updateBundle(ctx context.Context) error {
	return c.reportBundle(c.installer().Update(ctx, c.opts.value))
}

// removeBundle removes the bundle of --bundle remove.
func (c *command) removeBundle(ctx context.Context) error {
	return c.reportBundle(c.installer().Remove(ctx, c.opts.value))
}

// installer returns what installs bundles, as the options say. It asks at a terminal only.
func (c *command) installer() *remote.Installer {
	i := c.app.Bundles(c.anyTerminal(), func(text string) { fmt.Fprintln(c.forUser(), c.hide(text)) })
	i.Yes, i.Force, i.DryRun = c.opts.yes, c.opts.bundles.force, c.opts.dryRun
	i.Busy = func(label string) func() {
		if c.ErrTerminal && !c.opts.quiet {
			fmt.Fprintln(c.Err, label+" ...")
		}
		return func() {}
	}
	return i
}

// reportBundle shows what was done.
func (c *command) reportBundle(r remote.Report, err error) error {
	if err != nil && r.Items == nil {
		return err
	}
	return errors.Join(c.print(r, c.hide(r.Text())), err)
}

// listBundles shows the installed bundles.
func (c *command) listBundles(context.Context) error {
	records, err := c.app.Bundles(ask.Unavailable{}, func(string) {}).List()
	if len(records) == 0 && err != nil && c.opts.output == outputText {
		return err
	}
	rows := remote.Rows(records, func(t time.Time) string { return display.Age(time.Since(t)) })
	return errors.Join(printList(c, records, "no bundles are installed: loki --bundle install URL installs one", display.Table(rows, 1, 2)), err)
}
