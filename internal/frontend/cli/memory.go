package cli

import (
	"context"
	"strings"

	"loki/internal/agent/memory"
	"loki/internal/base/fault"
	commands "loki/internal/frontend/command"
)

// remember does what --memory says with the facts that are kept between conversations.
func (c *command) remember(ctx context.Context) error {
	scope, err := c.sessionScope()
	if err != nil {
		return err
	}
	m := commands.Memory{App: c.app, Agent: string(scope), Edit: func(ctx context.Context, text, _ string) (string, error) {
		if !c.InTerminal || !c.OutTerminal {
			return "", fault.New(fault.Usage, "there is no terminal for the editor").WithHint("edit the file itself, below %s", c.app.Memory().Dir)
		}
		return commands.EditText(ctx, c.app, text, commands.Terminal{In: c.In, Out: c.Out, Environ: c.app.Env.Environ()})
	}}
	facts, shown, err := m.Do(ctx, c.opts.sampling.memory, strings.Join(c.opts.text, " "))
	if err != nil {
		return err
	}
	return c.print(append([]memory.Fact{}, facts...), strings.TrimRight(c.hide(shown), "\n")+"\n")
}
