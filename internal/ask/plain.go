package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"loki/internal/text"

	"github.com/charmbracelet/x/ansi"
)

// askPlain asks with lines of text, without moving the cursor.
func askPlain(ctx context.Context, q *Question, in io.Reader, out io.Writer, width int) (string, error) {
	var b strings.Builder
	b.WriteString("?")
	if s := q.source(); s != "" {
		b.WriteString(" " + safeLine(s))
	}
	b.WriteString("\n" + strings.Trim(ansi.Wrap(safe(q.Text), width, ""), "\n") + "\n")
	prompt := "Answer"
	if len(q.Options) > 0 {
		for i, option := range q.Options {
			fmt.Fprintf(&b, "  %d) %s\n", i+1, safeLine(option))
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

	answers := lines{r: in}
	for {
		b.WriteString(prompt)
		line, err := "", error(nil)
		if tty, ok := in.(*os.File); ok && q.Kind == Secret {
			line, err = readSecret(ctx, tty, out, b.String())
		} else if _, err = io.WriteString(out, b.String()); err == nil {
			line, err = answers.next(ctx)
		}
		b.Reset()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the input was closed: %w", ErrUnavailable)
			}
			_, _ = io.WriteString(out, "\n") // the cursor stands behind the prompt
			return "", err
		}
		if line == "" && (q.Kind == Choice || q.Kind == Select) && !q.HasDefault {
			continue
		}
		answer, err := q.Match(line)
		if err == nil && q.refusable() && !slices.Contains(slices.Concat(q.Options, []string{"y", "n"}), strings.ToLower(answer)) {
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
