package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
)

// showLimits prints what is known of the limits of providers, or forgets it for the client of --reset.
func (c *command) showLimits(ctx context.Context) error {
	if c.opts.reset != "" {
		n, err := c.app.Limits().Reset(ctx, c.opts.reset)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "no limits are known for client %s", text.Printable(c.opts.reset)).WithHint("loki --limits lists them")
		}
		return err
	}
	list, err := c.app.Limits().List(ctx)
	if err != nil {
		return err
	}
	if c.opts.output != outputText {
		return printJSON(c.Out, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Err, "no limits are known: no model of a provider has been called yet")
		return nil
	}
	rows := [][]string{{"MODEL", "AT ONCE", "AT WORK", "WAITING", "CALLS", "REFUSED", "STATE"}}
	for _, s := range list {
		var notes []string
		if !s.PausedUntil.IsZero() {
			notes = append(notes, "paused until "+s.PausedUntil.Local().Format(time.DateTime))
		}
		if s.Breaker != "closed" {
			notes = append(notes, "does not answer")
		}
		for _, kind := range slices.Sorted(maps.Keys(s.Remaining)) {
			notes = append(notes, fmt.Sprintf("%.0f %s left", s.Remaining[kind], kind))
		}
		rows = append(rows, []string{
			text.Printable(s.Client + ":" + s.Model), strconv.Itoa(s.Concurrency), strconv.Itoa(s.AtWork), strconv.Itoa(s.Waiting), strconv.Itoa(s.Calls), strconv.Itoa(s.Refused),
			text.Printable(strings.Join(notes, ", ")),
		})
	}
	_, err = io.WriteString(c.Out, display.Table(rows, 1, 2, 3, 4, 5))
	return err
}
