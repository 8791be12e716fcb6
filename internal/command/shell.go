package command

import (
	"context"
	"fmt"
	"strings"

	"loki/internal/fault"
	"loki/internal/input"
	"loki/internal/text"
)

// shell runs a command of the user, shows its output, and offers to send that with the next prompt.
func (c *Console) shell(ctx context.Context, command string) error {
	if c.InMacro {
		return fault.New(fault.Usage, "a step of a macro cannot begin with an exclamation mark").
			WithHint("attach the output of a command: .file `%s`", command)
	}
	if command == "" {
		c.Out.Print("Usage: !COMMAND")
		return nil
	}
	output, status, err := c.App.Loader().Output(ctx, command, func(line string) { c.Out.Print(text.Printable(line)) })
	if err != nil {
		return err
	}
	if status != 0 {
		c.Out.Note(fmt.Sprintf("The command ended with status %d.", status))
	}
	if strings.TrimSpace(output) == "" {
		return nil
	}
	send, err := c.confirm(ctx, "Send the output with your next prompt?", false)
	if err != nil || !send {
		return unasked(ctx, err)
	}
	c.outputs = append(c.outputs, input.Document{Kind: input.Command, Name: command, Text: output})
	return nil
}
