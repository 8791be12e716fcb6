package command

import (
	"context"
	"errors"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
)

// The answers to a question that is answered with yes or no.
const (
	yes = "yes"
	no  = "no"
)

// confirm asks the user a question that is answered with yes or no; preset is the answer of a user
// who gives none. Where the user cannot be asked it is an error.
func (c *Console) confirm(ctx context.Context, text string, preset bool) (bool, error) {
	q := ask.Question{Kind: ask.Select, Text: text, Options: []string{yes, no}, Default: no, HasDefault: true}
	if preset {
		q.Default = yes
	}
	answer, err := c.Asker.Ask(ctx, q)
	return answer == yes, err
}

// line asks the user for a line that is not blank.
func (c *Console) line(ctx context.Context, text string) (string, error) {
	answer, err := c.Asker.Ask(ctx, ask.Question{Kind: ask.Line, Text: text, Validate: func(answer string) error {
		if strings.TrimSpace(answer) == "" {
			return errors.New("a value is needed")
		}
		return nil
	}})
	return strings.TrimSpace(answer), err
}

// errUnchanged is the error of a text that the user left as it was.
func errUnchanged() error { return fault.New(fault.Usage, "nothing was changed") }

// open opens a file in the user's editor.
func (c *Console) open(ctx context.Context, file string) error {
	switch {
	case c.InMacro:
		return fault.New(fault.Usage, "a macro cannot open an editor")
	case c.Edit == nil:
		return fault.New(fault.Usage, "an editor cannot be opened here").WithHint("the file: %s", file)
	}
	return c.Edit(ctx, file)
}

// editText lets the user edit a text and returns the result. The extension tells the editor what it is.
func (c *Console) editText(ctx context.Context, before, extension string) (string, error) {
	return editCopy(before, extension, func(file string) error { return c.open(ctx, file) })
}

// ignoreUnasked returns nil for the error of a question that the user left, or could not be asked, which
// means no.
func ignoreUnasked(ctx context.Context, err error) error {
	if errors.Is(err, ask.ErrUnavailable) || errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return nil
	}
	return err
}
