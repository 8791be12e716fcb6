package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"loki/internal/base/text"

	"github.com/charmbracelet/x/term"
)

// askPlain asks with lines of text, without moving the cursor. The terminal edits the lines, but for those of a secret.
func askPlain(ctx context.Context, q *Question, k *keyboard, out io.Writer, width, rows int) (answer string, err error) {
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), ErrElsewhere) {
			_, _ = io.WriteString(out, ErrElsewhere.Error()+"\r\n")
		}
	}()
	var b strings.Builder
	b.WriteString("?")
	if s := q.source(); s != "" {
		b.WriteString(" " + safeLine(s))
	}
	shown := strings.Trim(wrapText(foldEmptyLines(safe(q.Text)), width), "\n")
	b.WriteString("\n" + shown + "\n")
	if n := strings.Count(shown, "\n") + 1; rows > 0 && n+len(q.Options)+2 > rows {
		fmt.Fprintf(&b, "(The question has %d lines. This is how it begins:)\n%s\n", n, strings.Join(q.begins(width, strings.Split(shown, "\n")), "\n"))
	}
	prompt := "Answer"
	if len(q.Options) > 0 {
		for i, option := range q.Options {
			fmt.Fprintf(&b, "  %d) %s\n", i+1, text.CutColumns(safeLine(option), 3*width))
		}
		prompt = map[Kind]string{Select: "Number", Multi: "Numbers, with commas"}[q.Kind]
		if q.refusable() {
			prompt = "Number, or a no in your own words"
		}
		prompt = cmp.Or(prompt, "Number, or an answer of your own")
	}
	if q.HasDefault {
		prompt += " [" + text.CutColumns(safeLine(q.Default), 40) + "]"
	}
	prompt += ": "

	if q.Kind != Secret {
		err := k.markShown(ctx)
		if err == nil && k.wary > 0 {
			_, err = io.WriteString(out, strings.ReplaceAll(b.String(), "\n", "\r\n"))
			b.Reset()
		}
		if err == nil {
			err = k.await(ctx)
		}
		if errors.Is(err, io.EOF) {
			err = errClosed()
		}
		if err != nil {
			return "", err
		}
		_ = term.Restore(k.tty.Fd(), k.state)
		k.typed.rest, k.late = nil, false // of a sequence that was not complete; what follows a line is another one
	}
	for {
		b.WriteString(prompt)
		line, err := "", error(nil)
		if q.Kind == Secret {
			line, err = k.secret(ctx, out, b.String())
		} else if _, err = io.WriteString(out, b.String()); err == nil {
			line, err = k.typed.next(ctx)
		}
		b.Reset()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errClosed()
			}
			_, _ = io.WriteString(out, "\n") // the cursor is after the prompt
			return "", err
		}
		if line == "" && (q.Kind == Choice || q.Kind == Select) && !q.HasDefault {
			continue
		}
		answer, err := q.Match(line)
		if err == nil && q.refusable() && !slices.Contains(q.Options, answer) {
			answer = refusal(answer)
			_, err = fmt.Fprintf(out, "Answered: %s\n", safeLine(answer))
			return answer, err
		}
		if err == nil {
			return answer, nil
		}
		fmt.Fprintf(&b, "%s\n", safeLine(err.Error()))
	}
}

// errClosed is the error of Ctrl-D, and of a terminal that is gone.
func errClosed() error { return fmt.Errorf("the input was closed: %w", ErrUnavailable) }
