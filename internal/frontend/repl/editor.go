package repl

import (
	"context"

	"loki/internal/frontend/command"
)

// edit opens a file in the user's editor, and waits until it is closed.
func (r *repl) edit(ctx context.Context, file string) error {
	t, release := r.shell()
	defer release()
	return command.Edit(ctx, r.app, file, t)
}

// shell lends the terminal to a command of the user's shell.
func (r *repl) shell() (t command.Terminal, release func()) {
	return command.Terminal{In: r.in, Out: r.out, Environ: r.options.Environ}, r.lend()
}

// editText opens a text in the user's editor and returns the result.
func (r *repl) editText(ctx context.Context, text string) (string, error) {
	t, release := r.shell()
	defer release()
	return command.EditText(ctx, r.app, text, t)
}
