package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/llm/engine/governor"
)

// showLimits prints what is known of the limits of providers, or forgets it for the client of --reset.
func (c *command) showLimits(ctx context.Context) error {
	if c.opts.reset != "" {
		n, err := c.app.Models.Governor.Reset(ctx, c.opts.reset)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "no limits are known for client %s", text.Printable(c.opts.reset)).WithHint("loki --limits lists them")
		}
		return err
	}
	list, err := c.app.Models.Governor.List(ctx)
	if err != nil {
		return err
	}
	table := display.List([]string{"MODEL", "AT ONCE", "AT WORK", "WAITING", "CALLS", "REFUSED", "STATE"}, list, func(s governor.Status) []string {
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
		return []string{
			s.Client + ":" + s.Model, strconv.Itoa(s.Concurrency), strconv.Itoa(s.AtWork), strconv.Itoa(s.Waiting), strconv.Itoa(s.Calls), strconv.Itoa(s.Refused),
			strings.Join(notes, ", "),
		}
	}, 1, 2, 3, 4, 5)
	return printList(c, list, "no limits are known: no model of a provider has been called yet", table)
}
